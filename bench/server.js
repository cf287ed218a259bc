/**
 * What a server was asked, by its own count, and a lock that is held by nobody who works.
 */
import { randomUUID } from 'node:crypto'

/** @import { Db, Document, MongoClient } from 'mongodb' */

/** Monitoring, handshakes and farewells, which every driver sends by its own clock, and our asking. */
const uncounted = ['hello', 'isMaster', 'ping', 'endSessions', 'serverStatus']

/**
 * Commands of any kind on any database while `action` went on. Right only if nobody else is there.
 *
 * @param {MongoClient} client
 * @param {() => Promise<unknown>} action
 * @returns {Promise<Record<string, number>>} how many of each
 */
export async function commandsDuring(client, action) {
  const before = await commandCounts(client)
  await action()
  const after = Object.entries(await commandCounts(client))
  const more = after.map(
    ([name, count]) => /** @type {const} */ ([name, count - (before[name] ?? 0)]),
  )
  return Object.fromEntries(more.filter(([, count]) => count > 0))
}

/** @param {Record<string, number>} counts */
export const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0)

/** @param {MongoClient} client @returns {Promise<Record<string, number>>} */
async function commandCounts(client) {
  const { metrics } = await client.db('admin').command({ serverStatus: 1 })
  const counts = Object.entries(metrics.commands)
    .filter(([name]) => !uncounted.includes(name))
    .map(([name, count]) => [name, Number(count.total ?? 0)])
  return Object.fromEntries(counts)
}

/**
 * Hold the lock as a run of either version would, longer than any measurement lasts.
 *
 * @param {Db} db
 * @returns {Promise<() => Promise<void>>} releases it
 */
export async function holdLock(db) {
  const { localTime: now, electionId } = await db.command({ hello: 1 })
  const owner = randomUUID()
  const ttlMs = 600_000
  const locks = db.collection('_mmk_locks')
  await locks.insertOne({
    _id: /** @type {any} */ ('mmk_lock'),
    v: 2,
    host: 'bench',
    pid: process.pid,
    executedBy: 'bench',
    owner,
    leaseOwner: owner,
    acquiredAt: now,
    lockedAt: now,
    expiresAt: new Date(now.getTime() + ttlMs),
    ttlMs,
    beats: 0,
    ...(electionId ? { electionId } : {}),
  })
  return async () => {
    const { deletedCount } = await locks.deleteOne({ owner })
    if (deletedCount !== 1) throw new Error('the lock was taken from the one that held it')
  }
}
