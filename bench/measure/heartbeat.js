/**
 * A body that computes and never yields: is the lock still there, and does it keep others out?
 */
import { setTimeout as delay } from 'node:timers/promises'
import { poll } from '../../__test__/helpers/poll.js'
import { work } from '../workers.js'
import { add, row } from './rounds.js'

/** @import { Db, Document } from 'mongodb' */
/** @import { ToolId } from '../tools.js' */
/** @import { Context, Measurement, Row } from '../measurement.d.ts' */

const usual = { ttlSeconds: 2, blockedTtls: 5 }
const quickly = { ttlSeconds: 1, blockedTtls: 2 }
/** When a second run tries: past the TTL, in which even a dead holder keeps its lock. */
const rivalAfterTtls = 1.5
const lookEveryMs = 50
const lockId = /** @type {any} */ ('mmk_lock')

/** @type {Measurement} */
export const heartbeat = {
  name: 'heartbeat',
  title: 'A blocked event loop',
  about: `A body blocks the event loop for ${usual.blockedTtls} TTLs of ${usual.ttlSeconds} s. Meanwhile the lock document is looked at every ${lookEveryMs} ms: is the lease over, by the tool's own rule? After ${rivalAfterTtls} TTLs a second run of the same tool tries; more than one begun body means that two ran at once. migrate-mongo has no heartbeat.`,
  run,
}

/** @param {Context} context @returns {Promise<Row[]>} */
async function run(context) {
  const rows = {
    over: row('over', 'time without a lease while the body ran', '%'),
    bodies: row('bodies', 'bodies begun (1 is right)', 'runs'),
  }
  for (const tool of /** @type {const} */ (['ours', 'oneX'])) {
    const { over, bodies } = await blocked(context, tool)
    add(rows.over, tool, over)
    add(rows.bodies, tool, bodies)
  }
  return Object.values(rows)
}

/** @param {number} ms */
const blockingBody = (ms) => `
export async function up({ db }) {
  await db.collection('effects').insertOne({ began: true })
  const end = performance.now() + ${ms}
  while (performance.now() < end);
}
export async function down() {}
`

/**
 * @param {Context} context
 * @param {ToolId} tool
 * @returns {Promise<{ over: number, bodies: number }>} `over`: % of the time
 */
async function blocked({ stage, quick }, tool) {
  const { ttlSeconds, blockedTtls } = quick ? quickly : usual
  const blockedMs = ttlSeconds * blockedTtls * 1000
  const place = stage.place(await stage.app({ '1.js': blockingBody(blockedMs) }))
  const db = stage.client().db(place.dbName)
  const job = { tool, place, how: { ttlSeconds } }
  const holder = work(job)
  const effects = db.collection('effects')
  const began = poll(() => effects.findOne({}), { what: 'the body began', deadlineMs: 30_000 })
  await Promise.race([began, holder])

  const rival = delay(ttlSeconds * rivalAfterTtls * 1000).then(() => settled(work(job)))
  const over = await shareWithoutLease(db, blockedMs - 500, ttlSeconds * 1000)
  await Promise.all([settled(holder), rival])
  return { over: over * 100, bodies: await effects.countDocuments() }
}

/** How the runs end is no matter here: a rival that is kept out fails, as it should. @param {Promise<unknown>} run */
const settled = (run) => run.catch(() => {})

/**
 * @param {Db} db
 * @param {number} forMs
 * @param {number} ttlMs
 * @returns {Promise<number>} 0 to 1
 */
async function shareWithoutLease(db, forMs, ttlMs) {
  const deadline = performance.now() + forMs
  let [looks, over] = [0, 0]
  while (performance.now() < deadline) {
    const lock = await db.collection('_mmk_locks').findOne({ _id: lockId })
    const { localTime } = await db.command({ hello: 1 })
    looks += 1
    if (!lock || endOf(lock, ttlMs) <= localTime.getTime()) over += 1
    await delay(lookEveryMs)
  }
  return over / looks
}

/** 1.3 stores no end: it goes by the last renewal. @param {Document} lock @param {number} ttlMs */
const endOf = ({ expiresAt, lockedAt }, ttlMs) => expiresAt?.getTime() ?? lockedAt.getTime() + ttlMs
