/**
 * Warnings of our own: what is said of a configuration that works and may not do what is meant.
 */

/** @import { Event } from './contract.d.ts' */
/** @import { MmkConfig } from '../index.d.ts' */

/** Under this, a failover of the server can outlast the lease. */
const SHORT_TTL_SECONDS = 15
const DEFAULT_LOCK_COLLECTION = '_mmk_locks'

/**
 * What is worth saying at every run.
 * @param {Readonly<MmkConfig>} config
 * @returns {Event[]}
 */
export function cautions({ lockTTLSeconds, lockCollection }) {
  const events = []
  if (lockTTLSeconds < SHORT_TTL_SECONDS) {
    const message = `lockTTLSeconds is ${lockTTLSeconds}: a failover of the server can outlast the lock`
    events.push(warning('SHORT_LOCK_TTL', message))
  }
  if (lockCollection !== DEFAULT_LOCK_COLLECTION) {
    const message = `lockCollection is "${lockCollection}": this run takes no turns with runs that use "${DEFAULT_LOCK_COLLECTION}"`
    events.push(warning('LOCK_COLLECTION', message))
  }
  return events
}

/**
 * @param {string} code
 * @param {string} message
 * @returns {Event}
 */
export function warning(code, message) {
  return { type: 'warning', code, message, context: {} }
}
