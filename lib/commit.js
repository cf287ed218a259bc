/**
 * The end of a transaction: its commit, and what becomes of its session.
 *
 * Promises: `threw` means that nothing was committed. A commit without an answer is sent again, for
 * `retryTimeoutMs` at most and not once the signal has aborted; then its outcome is `unknown`.
 */

import { hasLabel } from './causes.js'
import { peek } from './location.js'
import { quietly, startPatience } from './patience.js'

/** @import { ClientSession } from 'mongodb' */
/** @import { Body } from './body.js' */
/** @import { Connection } from './driver.js' */
/** @import { Ending } from './transaction.js' */

/** The driver's word for: begin the whole transaction again. */
export const TRANSIENT = 'TransientTransactionError'
const UNKNOWN = 'UnknownTransactionCommitResult'

/**
 * @param {ClientSession} session
 * @param {Body} body
 * @returns {Promise<Omit<Ending, 'durationMs'>>}
 */
export async function commit(session, body) {
  const clock = startPatience(body)
  for (let attempt = 1; ; attempt += 1) {
    try {
      await session.commitTransaction()
      return { outcome: 'done' }
    } catch (error) {
      if (hasLabel(error, TRANSIENT)) return { outcome: 'threw', error, committing: true }
      if (!hasLabel(error, UNKNOWN)) {
        // A write concern that failed speaks of a commit that has happened.
        const happened = peek(error, 'name') === 'MongoWriteConcernError'
        return { outcome: happened ? 'unknown' : 'threw', error }
      }
      if (!(await clock.paused(attempt))) return { outcome: 'unknown', error }
    }
  }
}

/**
 * Ends the session. A commit that never arrived has left its transaction open, in the way of whoever
 * writes the same documents: the session's next one ends it, and changes nothing if it did arrive.
 * @param {ClientSession} session
 * @param {Ending} ending
 * @param {Body} body
 * @param {Connection} connection
 */
export async function leave(session, { outcome }, { lockCollection }, { db }) {
  if (outcome === 'unknown') {
    await quietly(async () => {
      session.startTransaction()
      await db.collection(lockCollection).findOne({}, { session })
      await session.abortTransaction()
    })
  }
  await quietly(() => session.endSession())
}
