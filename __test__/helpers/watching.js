/**
 * Is somebody listening? A change stream that waits shows on the server as a cursor of its own.
 */
import { poll } from './poll.js'

/**
 * Waits until that many change streams on the lock collection of this database stand.
 *
 * @param {import('./database.js').Database} database
 * @param {number} [count]
 */
export async function lockWatched({ db, name }, count = 1) {
  const admin = db.client.db('admin')
  const stream = { 'cursor.originatingCommand.pipeline.0.$changeStream': { $exists: true } }
  const ns = { ns: `${name}._mmk_locks` }
  const current = { $currentOp: { allUsers: true, idleCursors: true } }
  await poll(
    async () => {
      const found = await admin.aggregate([current, { $match: { ...ns, ...stream } }]).toArray()
      return found.length >= count
    },
    { what: `${count} listen for the lock`, deadlineMs: 30_000 },
  )
}
