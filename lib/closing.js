/**
 * Work that leaves something to close.
 *
 * Promises: it is closed whatever the work came to; a failure while closing is attached to the first
 * error, or becomes a warning when there was none, and never replaces it.
 */
import { isMmkError, MmkError } from './errors.js'
import { createCauses, describeThrown } from './thrown.js'

/** @import { Event } from './contract.d.ts' */

/**
 * Does the work, then closes, whatever the work came to.
 * @template T
 * @param {() => Promise<T>} work
 * @param {() => Promise<unknown>} close
 * @param {(event: Event) => void} report
 * @returns {Promise<T>}
 */
export async function closing(work, close, report) {
  /** @type {unknown} */
  let first
  try {
    return await work()
  } catch (error) {
    first = error
    throw error
  } finally {
    await closeQuietly(close, first, report)
  }
}

/**
 * @param {() => Promise<unknown>} close
 * @param {unknown} first
 * @param {(event: Event) => void} report
 */
async function closeQuietly(close, first, report) {
  try {
    await close()
  } catch (cause) {
    const { message } = describeThrown(cause, createCauses())
    const text = `Could not close a connection: ${message}`
    if (isMmkError(first)) first.suppressed.push(new MmkError('CONNECTION_FAILED', text, { cause }))
    else if (first === undefined)
      report({ type: 'warning', code: 'DISCONNECT', message: text, context: {} })
  }
}
