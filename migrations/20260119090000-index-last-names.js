export const description = 'Find customers by last name'

/** @param {import('../index.d.ts').MigrationContext} context */
export async function up({ db }) {
  await db.collection('customers').createIndex({ last: 1 }, { name: 'by_last_name' })
}

/** @param {import('../index.d.ts').MigrationContext} context */
export async function down({ db }) {
  await db.collection('customers').dropIndex('by_last_name')
}
