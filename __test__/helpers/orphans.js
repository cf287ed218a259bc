/**
 * A write that outlives the process that sent it: 20,000 documents, a millisecond or more for each,
 * in one command of the server's.
 */
import { poll } from './poll.js'

export const documents = 20_000

/** @param {import('./database.js').Database} database */
export async function fillDocuments({ db }) {
  const all = Array.from({ length: documents }, (_, _id) => ({ _id, by: 'nobody' }))
  await db.collection('documents').insertMany(/** @type {any[]} */ (all))
}

/**
 * A migration that writes `by: 'first'` slowly when it runs for the first time, and `by: 'next'` at
 * once when it runs again.
 *
 * @param {string} ending statements after the slow write was sent; it is the promise `update`, and
 *   `sent()` resolves when the server is at it
 * @param {number} [msEach] for each document
 */
export const overwriting = (ending, msEach = 1) => `
import { setTimeout as delay } from 'node:timers/promises'
export async function up({ db, signal }) {
  const counted = { upsert: true, returnDocument: 'after' }
  const { ups } = await db.collection('runs').findOneAndUpdate({ _id: '1' }, { $inc: { ups: 1 } }, counted)
  const all = db.collection('documents')
  if (ups > 1) return all.updateMany({}, { $set: { by: 'next' } })
  const update = all.updateMany({ $where: 'sleep(${msEach}) || true' }, { $set: { by: 'first' } })
  update.catch(() => {})
  const sent = async () => {
    while (!(await all.findOne({ by: 'first' }))) await delay(20)
  }
  ${ending}
}
export async function down() {}
`

/** @param {import('./database.js').Database} database */
export function firstWriteBegan({ db }) {
  return poll(() => db.collection('documents').findOne({ by: 'first' }), {
    what: 'the slow write began',
  })
}

/**
 * @param {import('./database.js').Database} database
 * @returns {Promise<import('mongodb').Document[]>} writes that are going on in its documents, whoever
 *   sent them
 */
export function writesGoingOn({ db, name }) {
  const admin = db.client.db('admin')
  const match = { active: true, op: 'update', ns: `${name}.documents` }
  return admin.aggregate([{ $currentOp: { allUsers: true } }, { $match: match }]).toArray()
}

/**
 * @param {import('./database.js').Database} database
 * @returns {Promise<number>} documents that were overwritten, seen when no write is left
 */
export async function overwritten(database) {
  await poll(async () => (await writesGoingOn(database)).length === 0, {
    what: 'the slow write is gone',
    deadlineMs: 120_000,
    everyMs: 100,
  })
  return database.db.collection('documents').countDocuments({ by: { $ne: 'next' } })
}
