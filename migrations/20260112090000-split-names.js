import { setTimeout as pause } from 'node:timers/promises'

export const description = 'Split `name` into `first` and `last`, gently'

/** @param {number} position */
const wordOfName = (position) => ({ $arrayElemAt: [{ $split: ['$name', ' '] }, position] })

/**
 * A backfill that spares the server: one customer at a time, with a pause. It takes some seconds,
 * during which the lock is renewed. It asks for what is still to do, so it may be run again.
 *
 * @param {import('../index.d.ts').MigrationContext} context
 */
export async function up({ db, signal }) {
  const customers = db.collection('customers')
  for (;;) {
    signal.throwIfAborted()
    const { matchedCount } = await customers.updateOne({ first: { $exists: false } }, [
      { $set: { first: wordOfName(0), last: wordOfName(1) } },
    ])
    if (matchedCount === 0) return
    await pause(350, undefined, { signal })
  }
}

/** @param {import('../index.d.ts').MigrationContext} context */
export async function down({ db }) {
  await db.collection('customers').updateMany({}, { $unset: { first: '', last: '' } })
}
