/**
 * Waiting for something to become true, without guessing how long it takes.
 */
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Ask again and again until the answer is truthy.
 *
 * @template T
 * @param {() => T | Promise<T>} condition
 * @param {{ what: string, deadlineMs?: number, everyMs?: number }} options `what` completes the
 *   sentence "did not happen in time: …"
 * @returns {Promise<Exclude<T, false | null | undefined>>} the first truthy answer
 */
export async function poll(condition, { what, deadlineMs = 10_000, everyMs = 20 }) {
  const deadline = performance.now() + deadlineMs
  for (;;) {
    const answer = await condition()
    if (answer) return /** @type {Exclude<T, false | null | undefined>} */ (answer)
    if (performance.now() > deadline) {
      throw new Error(`did not happen within ${deadlineMs} ms: ${what}`)
    }
    await delay(everyMs)
  }
}
