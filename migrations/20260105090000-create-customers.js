// A runnable sample: `npm run demo` applies this folder, and `mmk` in this repository finds it too.
export const description = 'Twelve customers, each with a full name'

const names = [
  'Ada Lovelace',
  'Alan Turing',
  'Barbara Liskov',
  'Donald Knuth',
  'Edsger Dijkstra',
  'Frances Allen',
  'Grace Hopper',
  'John McCarthy',
  'Leslie Lamport',
  'Margaret Hamilton',
  'Radia Perlman',
  'Tony Hoare',
]

/** @param {import('../index.d.ts').MigrationContext} context */
export async function up({ db }) {
  // Upserts, so that a second run after an interruption finds nothing to add.
  const upserts = names.map((name, index) => ({
    updateOne: {
      filter: { _id: /** @type {any} */ (index + 1) },
      update: { $setOnInsert: { name } },
      upsert: true,
    },
  }))
  await db.collection('customers').bulkWrite(upserts)
}

/** @param {import('../index.d.ts').MigrationContext} context */
export async function down({ db }) {
  await db.collection('customers').drop()
}
