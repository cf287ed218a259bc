/**
 * What the migrations of a torture do, and the record that they keep of it. Every effect has an `_id`
 * of its own, so that the checks can ask the servers what became of it.
 *
 * The generated files import this module; it runs in the processes under torture.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { bulkSize } from './profile.js'
import { createRandom } from './random.js'
import { currentRun, hasOwnClient, pausing, profile, record } from './watch.js'

/** @typedef {import('../../index.d.ts').MigrationContext} Context */
/** @typedef {import('./random.js').Random} Random */
/** @typedef {import('./profile.js').BodyKind} BodyKind */

/**
 * @typedef {{ _id: any, name: string, kind: BodyKind, run: string | null, token: number | null }} Effect
 */

/** @type {Record<BodyKind, (context: Context, random: Random) => unknown>} */
const kinds = { transaction, own, plain, long, block, throw: fail, exit, old }

/**
 * The `up` of a generated migration.
 * @param {BodyKind} kind
 */
export function body(kind) {
  /** @param {Context} context */
  return (context) => {
    // Another attempt at the same migration fares differently.
    const random = createRandom(`${context.name} ${currentRun().run} ${process.pid}`)
    return kinds[kind](context, random)
  }
}

/**
 * @param {Context} context
 * @param {BodyKind} kind
 * @param {number} [index]
 * @returns {Effect}
 */
function effect({ name, fencingToken: token }, kind, index = 0) {
  const { run } = currentRun()
  return { _id: `${name}/${run ?? process.hrtime.bigint()}/${index}`, name, kind, run, token }
}

/** The product's own transaction. @param {Context} context @param {Random} random */
async function transaction(context, random) {
  const { db, session } = context
  const made = effect(context, 'transaction')
  record('effectBegun', made)
  await db.collection('fenced').insertOne(made, { session })
  await think(random)
  stopSometimes(random, 'in the transaction')
}

/** Transactions of the body's own. @param {Context} context @param {Random} random */
async function own(context, random) {
  const count = random.integer(1, 4)
  for (let index = 0; index < count; index += 1) {
    const made = effect(context, 'own', index)
    const session = context.client.startSession()
    record('effectBegun', made)
    let outcome = 'failed'
    try {
      session.startTransaction({ writeConcern: { w: 'majority' } })
      await context.db.collection('fenced').insertOne(made, { session })
      await think(random)
      stopSometimes(random, 'in the transaction')
      await context.fence(session)
      if (random.chance(0.2)) stopSometimes(random, 'behind the fence')
      outcome = 'unknown'
      await session.commitTransaction()
      outcome = 'done'
    } catch (error) {
      if (outcome === 'failed' && isLost(error)) outcome = 'fenced'
      throw error
    } finally {
      record('effectEnded', { ...made, outcome })
      await session.endSession().catch(() => {})
    }
  }
}

/** Writes without a fence. @param {Context} context @param {Random} random */
async function plain(context, random) {
  const count = random.integer(1, 5)
  for (let index = 0; index < count; index += 1) {
    // Nobody closes a client of our own: without this it would write on.
    if (hasOwnClient()) context.signal.throwIfAborted()
    const made = effect(context, 'plain', index)
    record('effectBegun', made)
    let outcome = 'unknown'
    try {
      await context.db.collection('plain').insertOne(made, { writeConcern: { w: 'majority' } })
      outcome = 'done'
    } finally {
      record('effectEnded', { ...made, outcome })
    }
    await think(random)
  }
}

/** One operation that the server works on for seconds. @param {Context} context @param {Random} random */
async function long(context, random) {
  // On a client of our own nobody would find it.
  if (hasOwnClient()) return plain(context, random)
  const made = effect(context, 'long')
  const pause = Math.round(random.between(...profile.longMs) / bulkSize)
  const { _id: op, token } = made
  record('effectBegun', made)
  let outcome = 'unknown'
  try {
    await context.db
      .collection('bulk')
      .updateMany({ $where: `sleep(${pause}); return true` }, { $set: { op, token } })
    outcome = 'done'
  } finally {
    record('effectEnded', { ...made, outcome })
  }
}

/** Blocks the event loop for two leases, without using up a processor. */
function block() {
  const never = new Int32Array(new SharedArrayBuffer(4))
  pausing('blocked event loop', () => void Atomics.wait(never, 0, 0, 2 * profile.ttlMs))
}

/** In a run of 1.3.0: holds the lock for a while. @param {Context} _ @param {Random} random */
async function old(_, random) {
  record('oldBodyBegun')
  await delay(random.between(300, 3000))
  record('oldBodyEnded')
}

/** Another attempt may succeed, or nothing behind it would ever run. @param {Context} _ @param {Random} random */
function fail(_, random) {
  if (random.chance(0.5)) throw new Error('This migration fails, as some do')
}

/** @param {Context} _ @param {Random} random */
function exit(_, random) {
  if (random.chance(0.5)) process.exit(7)
}

/** @param {Random} random */
function think(random) {
  return delay(random.chance(0.75) ? random.between(0, 200) : random.between(300, 1500))
}

/** The fleet wakes us up, sooner or later. @param {Random} random @param {string} why */
function stopSometimes(random, why) {
  if (random.chance(profile.selfStop)) pausing(why, () => process.kill(process.pid, 'SIGSTOP'))
}

/** @param {unknown} error */
const isLost = (error) => error instanceof Error && 'code' in error && error.code === 'LOCK_LOST'
