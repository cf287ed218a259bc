/**
 * What is said of a migration that failed, and of what it has left. Pure; the text is as in
 * `messages.js`.
 */
import { escapeText, listNames } from './text.js'

/** @import { Text } from './messages.js' */

/**
 * What is said when a body threw: why, where, and what is true of the database now.
 * @param {{
 *   name: string
 *   direction: 'up' | 'down'
 *   reason: string
 *   location?: string | null
 *   transaction?: boolean | null
 *   committed?: boolean
 *   outside?: { command: string, collection: string }[]
 *   done?: string[]
 *   notStarted?: string[]
 * }} facts
 * @returns {Text}
 */
export function executionFailureText(facts) {
  const { name, direction, reason, location, transaction, done = [], notStarted = [] } = facts
  const verb = direction === 'up' ? 'Applied' : 'Reverted'
  const details = [`Reason: ${escapeText(reason)}`]
  if (location) details.push(`Thrown at: ${escapeText(location)}`)
  if (transaction === true) details.push(leftText(facts))
  if (transaction === false) {
    details.push('Not rolled back: it ran without a transaction, so its writes so far remain')
  }
  if (done.length > 0) details.push(`${verb} before it, and kept: ${listNames(done)}`)
  if (notStarted.length > 0) details.push(`Not started: ${listNames(notStarted)}`)
  return { message: `${escapeText(name)} failed in ${direction}()`, details }
}

/**
 * What the transaction of a body that failed has left.
 * @param {{ committed?: boolean, outside?: { command: string, collection: string }[] }} facts
 */
function leftText({ committed = false, outside = [] }) {
  if (committed) {
    return 'Not rolled back: it committed its transaction itself, so what it wrote is there and not recorded as applied'
  }
  if (outside.length === 0) return 'Rolled back: its transaction left nothing behind'
  const writes = outside.map(({ command, collection }) => `${command} on "${collection}"`)
  return `Rolled back, but for its writes outside the transaction: ${listNames(writes)}`
}
