/**
 * Runs one body, plainly or in a transaction, and reports how it ended.
 *
 * Promises: it never rejects; what a body does behind its transaction's back, or leaves undone when it
 * returns, is told as far as our own client shows it. A body that never settles is the core's to race.
 */

import { startClock } from './patience.js'
import { escapeText } from './text.js'
import { describeThrown } from './thrown.js'
import { runInTransaction } from './transaction.js'

/** @import { ClientSession } from 'mongodb' */
/** @import { BodyReply, Event } from './contract.d.ts' */
/** @import { Connection } from './driver.js' */
/** @import { Write } from './monitor.js' */
/** @import { Causes } from './thrown.js' */

/**
 * @typedef {object} Call
 * @property {string} name
 * @property {(session?: ClientSession) => unknown} run
 * @property {Uint8Array | null} settle
 * @property {Uint8Array | null} fence
 * @property {AbortSignal} signal
 * @property {number} retryTimeoutMs
 * @property {boolean} strict writes outside the transaction keep it from committing
 * @property {string} lockCollection written by us on a body's behalf
 * @property {(event: Event) => void} tell
 *
 * @typedef {Call & {
 *   onOutside: (write: Write) => void
 *   outside: () => Write[]
 *   assertInside: () => void
 * }} Body
 */

/** Each kind of write is told once; a body that finds this many has been told enough. */
const MAX_KINDS = 20

/**
 * @param {Call} call
 * @param {Connection} connection
 * @param {Causes} causes
 * @returns {Promise<BodyReply>}
 */
export async function runBody(call, connection, causes) {
  const run = awaitingAll(call, connection)
  const clock = startClock()
  try {
    if (call.settle !== null) {
      const body = { ...call, run, ...outsideWrites(call) }
      return await runInTransaction(body, call.settle, connection, causes)
    }
    await run()
    return { outcome: 'done', durationMs: clock.stop(), attempts: 1 }
  } catch (error) {
    return { outcome: 'threw', durationMs: clock.stop(), error: describeThrown(error, causes) }
  }
}

/**
 * The body, and a warning when it returns before its operations have ended.
 * @param {Call} call
 * @param {Connection} connection
 * @returns {Call['run']}
 */
function awaitingAll({ name, run, tell }, { openOperations }) {
  return async (session) => {
    const before = openOperations()
    await run(session)
    // What was begun without an `await` asks for its connection in this turn of the event loop.
    await new Promise(setImmediate)
    const operations = openOperations() - before
    if (operations <= 0) return
    const [count, were] =
      operations === 1 ? ['an operation', 'was'] : [`${operations} operations`, 'were']
    const message =
      `${escapeText(name)} returned while ${count} of its client ${were} still in flight: ` +
      'await every promise, or it counts as done before it is'
    tell({ type: 'warning', code: 'OPERATIONS_IN_FLIGHT', message, context: { name, operations } })
  }
}

/**
 * What to do about writes that the transaction does not cover.
 * @param {Call} call
 */
function outsideWrites({ name, strict, lockCollection, tell }) {
  /** @type {Map<string, Write>} */
  const kinds = new Map()
  return {
    /** @param {Write} write */
    onOutside: (write) => {
      const { command, collection } = write
      const kind = `${command} ${collection}`
      if (collection === lockCollection || kinds.has(kind) || kinds.size === MAX_KINDS) return
      kinds.set(kind, write)
      const message =
        `${escapeText(name)} runs in a transaction, and its ${escapeText(command)} on ` +
        `"${escapeText(collection)}" is outside of it: pass { session }, or it stays when the rest is rolled back`
      tell({ type: 'warning', code: 'WRITE_OUTSIDE_SESSION', message, context: { name, ...write } })
    },
    /** What stays although the transaction is rolled back. */
    outside: () => [...kinds.values()],
    assertInside: () => {
      if (!strict || kinds.size === 0) return
      const list = [...kinds.values()].map(
        ({ command, collection }) => `${command} on "${collection}"`,
      )
      throw new Error(
        `It wrote outside its transaction, which strict forbids: ${list.join(', ')}. ` +
          'Those writes stay; the transaction is not committed',
      )
    },
  }
}
