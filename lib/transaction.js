/**
 * Runs a transactional body: in a transaction that ends with the settle command and the fence, and
 * again from the start when the server gives the transaction up for a passing reason.
 *
 * Promises: the body's writes and its entry commit together or not at all; no attempt begins once the
 * signal has aborted, a later run has begun, or `retryTimeoutMs` has passed since the first one began,
 * and a commit is sent again for as long at most; `unknown` is said only when the commit's outcome
 * could not be learned. A body that ends its transaction itself has failed; where it got around the
 * session that we hold, what it committed is said to be there. It does not watch the clock while the
 * body runs.
 */

import { causesOf, hasLabel } from './causes.js'
import { commit, leave, TRANSIENT } from './commit.js'
import { isLatest, matched } from './fencing.js'
import { ENDED, hold } from './held-session.js'
import { peek } from './location.js'
import { watchTransaction } from './monitor.js'
import { quietly, startClock, startPatience } from './patience.js'
import { redactData } from './redact.js'
import { describeThrown } from './thrown.js'

/** @import { ClientSession } from 'mongodb' */
/** @import { Body } from './body.js' */
/** @import { BodyReply } from './contract.d.ts' */
/** @import { Connection } from './driver.js' */
/** @import { Causes } from './thrown.js' */

/**
 * How one attempt ended, with the raw value that was thrown.
 * @typedef {object} Ending
 * @property {BodyReply['outcome']} outcome
 * @property {number} durationMs
 * @property {unknown} [error]
 * @property {{ command: string, message: string } | null} [caught] what had ended the transaction before
 * @property {boolean} [committing] was it the commit that failed?
 * @property {boolean} [committed] did the body commit, so that what it wrote is there?
 *
 * @typedef {object} Watch
 * @property {() => { command: string, message: string } | null} failure
 * @property {() => { committed: boolean, aborted: boolean }} ended
 * @property {() => void} stop
 */

/**
 * The server has ended the transaction: after an election, because it lasted too long, or because of
 * an error that the body caught. Only the first is over the next time; two in a row are worth a try.
 */
const NO_SUCH_TRANSACTION = 251
const MAX_GONE = 3
/** The server's word for: this one was committed already. Not by us, who commit last. */
const TRANSACTION_COMMITTED = 256

/**
 * @param {Body} body
 * @param {Uint8Array} settle
 * @param {Connection} connection
 * @param {Causes} causes
 * @returns {Promise<BodyReply>}
 */
export async function runInTransaction(body, settle, connection, causes) {
  const clock = startPatience(body)
  let session = connection.client.startSession()
  let gone = 0
  for (let attempt = 1; ; attempt += 1) {
    const ending = await tryOnce(body, settle, session, connection)
    gone = hasCode(ending.error, NO_SUCH_TRANSACTION) ? gone + 1 : 0
    if (!isPassing(ending) || gone === MAX_GONE || !(await clock.paused(attempt))) {
      await leave(session, ending, body, connection)
      return replyOf(ending, attempt, body, causes)
    }
    if (await isOvertaken(ending, body, connection)) {
      await leave(session, ending, body, connection)
      return { outcome: 'fenced', durationMs: ending.durationMs }
    }
    const { message: reason } = describeThrown(ending.error, causes)
    body.tell({ type: 'transactionRetried', name: body.name, attempt: attempt + 1, reason })
    // The same one again: its next transaction ends what the server may have kept of the last.
    if (session.hasEnded) session = connection.client.startSession()
  }
}

/**
 * @param {unknown} error
 * @param {number} code
 */
function hasCode(error, code) {
  return causesOf(error).some((each) => peek(each, 'code') === code)
}

/** @param {Ending} ending */
function isPassing({ outcome, error, caught, committed }) {
  return outcome === 'threw' && !caught && !committed && hasLabel(error, TRANSIENT)
}

/**
 * @param {Ending} ending
 * @param {number} attempts
 * @param {Body} body
 * @param {Causes} causes
 * @returns {BodyReply}
 */
function replyOf({ outcome, durationMs, error, caught, committed }, attempts, body, causes) {
  if (outcome === 'done') return { outcome, durationMs, attempts }
  if (outcome === 'conflict' || outcome === 'fenced') return { outcome, durationMs }
  const described = describeThrown(error, causes)
  if (attempts > 1) described.context.attempts = attempts
  if (caught) described.context.caught = redactData(caught)
  if (committed) described.context.committed = true
  const outside = body.outside()
  if (outside.length > 0) described.context.outside = redactData(outside)
  return { outcome, durationMs, error: described }
}

/**
 * @param {Body} body
 * @param {Uint8Array} settle
 * @param {ClientSession} session
 * @param {Connection} connection
 * @returns {Promise<Ending>}
 */
async function tryOnce(body, settle, session, connection) {
  const clock = startClock()
  const watch = connection.monitored
    ? watchTransaction(connection.client, session, body.onOutside)
    : null
  /** @type {ReturnType<typeof hold> | null} */
  let held = null
  try {
    session.startTransaction({ writeConcern: { w: 'majority' } })
    held = hold(session)
    await body.run(session)
    const durationMs = clock.stop()
    body.assertInside()
    assertOpen(session, held, watch)
    return { durationMs, ...(await conclude(body, settle, session, connection, held)) }
  } catch (error) {
    const caught = endedEarlier(error, watch)
    const committed = watch?.ended().committed || hasCode(error, TRANSACTION_COMMITTED)
    return { outcome: 'threw', durationMs: clock.stop(), error, caught, committed }
  } finally {
    watch?.stop()
    held?.release()
    await quietly(() => session.inTransaction() && session.abortTransaction())
  }
}

/**
 * What comes after the body: its entry, the fence, the commit.
 * @param {Body} body
 * @param {Uint8Array} settle
 * @param {ClientSession} session
 * @param {Connection} connection
 * @param {ReturnType<typeof hold>} held
 * @returns {Promise<Omit<Ending, 'durationMs'>>}
 */
async function conclude(body, settle, session, connection, held) {
  if (!(await matched(settle, session, connection))) return { outcome: 'conflict' }
  // Last of all: from here to the commit it keeps later runs from beginning.
  if (body.fence && !(await isLatest(body.fence, session, connection))) return { outcome: 'fenced' }
  // Ours: until here the body, or what it did not await, could not commit.
  held.release()
  return commit(session, body)
}

/**
 * @param {ClientSession} session
 * @param {ReturnType<typeof hold>} held
 * @param {Watch | null} watch
 */
function assertOpen(session, held, watch) {
  held.assertUntouched()
  const { committed, aborted } = watch?.ended() ?? {}
  if (committed || aborted || !session.inTransaction()) throw new Error(ENDED)
}

/**
 * The error that had ended the transaction when a later command found it gone.
 * @param {unknown} error
 * @param {Watch | null} watch
 */
function endedEarlier(error, watch) {
  return hasCode(error, NO_SUCH_TRANSACTION) ? (watch?.failure() ?? null) : null
}

/**
 * Has a later run begun meanwhile? A question that gets no answer is left to the next attempt, and so
 * is one that the transaction itself might stand in the way of.
 * @param {Ending} ending
 * @param {Body} body
 * @param {Connection} connection
 */
async function isOvertaken({ committing }, { fence }, connection) {
  if (committing || fence === null) return false
  try {
    return !(await matched(fence, undefined, connection))
  } catch {
    return false
  }
}
