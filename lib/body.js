/**
 * Runs one body, plainly or in a transaction, and reports how it ended.
 *
 * Promises: it never rejects; a transactional body commits together with the settle command or not at
 * all; `unknown` is said only when the commit's outcome could not be learned. It runs the body once,
 * and does not watch the clock: a body that never settles is the core's to race.
 */
import { performance } from 'node:perf_hooks'
import { describeThrown } from './thrown.js'

/** @import { ClientSession } from 'mongodb' */
/** @import { BodyReply } from './contract.d.ts' */
/** @import { Connection } from './driver.js' */
/** @import { Causes } from './thrown.js' */

/** The driver itself retries a commit once; more than this in all means the server is gone. */
const COMMIT_ATTEMPTS = 5
/** The server's code for a document that another transaction has changed since ours began. */
const WRITE_CONFLICT = 112

/**
 * @typedef {object} Body
 * @property {(session?: ClientSession) => unknown} run
 * @property {Uint8Array | null} settle
 * @property {Uint8Array | null} fence
 * @property {AbortSignal} signal
 */

/**
 * @param {Body} body
 * @param {Connection} connection
 * @param {Causes} causes
 * @returns {Promise<BodyReply>}
 */
export async function runBody(body, connection, causes) {
  const clock = startClock()
  try {
    if (body.settle !== null)
      return await inTransaction(body, body.settle, connection, causes, clock)
    await body.run()
    return { outcome: 'done', durationMs: clock.stop() }
  } catch (error) {
    return { outcome: 'threw', durationMs: clock.stop(), error: describeThrown(error, causes) }
  }
}

/** Whole milliseconds until the first `stop`; later ones repeat it. */
function startClock() {
  const started = performance.now()
  /** @type {number | undefined} */
  let stopped
  return {
    stop: () => {
      stopped ??= Math.round(performance.now() - started)
      return stopped
    },
  }
}

/**
 * @param {Body} body
 * @param {Uint8Array} settle
 * @param {Connection} connection
 * @param {Causes} causes
 * @param {ReturnType<typeof startClock>} clock
 * @returns {Promise<BodyReply>}
 */
async function inTransaction(body, settle, connection, causes, clock) {
  const session = connection.client.startSession()
  try {
    session.startTransaction({ writeConcern: { w: 'majority' } })
    await body.run(session)
    const durationMs = clock.stop()
    assertOpen(session)
    if (!(await matched(settle, session, connection))) return { outcome: 'conflict', durationMs }
    // Last of all: from here to the commit it keeps later runs from beginning.
    if (body.fence && !(await isLatest(body.fence, session, connection)))
      return { outcome: 'fenced', durationMs }
    const failure = await commit(session, body.signal)
    if (failure === null) return { outcome: 'done', durationMs }
    const error = describeThrown(failure.error, causes)
    return { outcome: failure.known ? 'threw' : 'unknown', durationMs, error }
  } finally {
    await quietly(() => session.inTransaction() && session.abortTransaction())
    await quietly(() => session.endSession())
  }
}

/** @param {ClientSession} session */
function assertOpen(session) {
  if (session.inTransaction()) return
  throw new Error(
    'The migration ended its transaction itself: leave commit and abort to mongo-migrate-kit',
  )
}

/**
 * Runs one of the core's conditional commands in a transaction: did its precondition still hold?
 * @param {Uint8Array} command
 * @param {ClientSession | undefined} session
 * @param {Connection} connection
 */
export async function matched(command, session, { db, driver }) {
  const document = driver.BSON.deserialize(command, { promoteValues: false })
  const reply = await db.command(document, session ? { session } : {})
  const [failed] = reply.writeErrors ?? []
  if (failed) throw Object.assign(new Error(failed.errmsg), { code: failed.code })
  return Number(reply.n) === 1
}

/**
 * Has no later run begun? In a transaction, a run that begins meanwhile shows as a write conflict on
 * the fence, and so does another transaction of our own: asking again outside tells which it was.
 * @param {Uint8Array} fence
 * @param {ClientSession} session
 * @param {Connection} connection
 */
export async function isLatest(fence, session, connection) {
  try {
    return await matched(fence, session, connection)
  } catch (/** @type {any} */ error) {
    if (error?.code !== WRITE_CONFLICT) throw error
    if (await matched(fence, undefined, connection)) throw error
    return false
  }
}

/**
 * @param {ClientSession} session
 * @param {AbortSignal} signal
 * @returns {Promise<null | { known: boolean, error: unknown }>}
 */
async function commit(session, signal) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await session.commitTransaction()
      return null
    } catch (/** @type {any} */ error) {
      const unknown = hasLabel(error, 'UnknownTransactionCommitResult')
      if (!unknown) return { known: true, error }
      if (attempt === COMMIT_ATTEMPTS || signal.aborted) return { known: false, error }
    }
  }
}

/**
 * @param {any} error
 * @param {string} label
 */
function hasLabel(error, label) {
  return typeof error?.hasErrorLabel === 'function' && error.hasErrorLabel(label)
}

/**
 * Clean-up that must not hide how the body ended: what it leaves, the server ends by itself.
 * @param {() => unknown} step
 */
async function quietly(step) {
  try {
    await step()
  } catch {
    // Nothing to add: the outcome is already known.
  }
}
