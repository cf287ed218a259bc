/**
 * Clocks for bodies, and the pauses between attempts.
 *
 * Promises: pauses are short, grow, differ from one runner to the next, and end with the signal.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'

/** @import { Body } from './body.js' */

/** What other writers do is over in milliseconds, an election in seconds. */
const FIRST_PAUSE_MS = 10
const MAX_PAUSE_MS = 1000

/** Whole milliseconds until the first `stop`; later ones repeat it. */
export function startClock() {
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
 * Pauses between attempts for as long as there may be another one.
 * @param {Pick<Body, 'signal' | 'retryTimeoutMs'>} body
 */
export function startPatience({ signal, retryTimeoutMs }) {
  const began = performance.now()
  return {
    /**
     * @param {number} attempt the one that failed, from 1
     * @returns {Promise<boolean>} may there be another one?
     */
    paused: async (attempt) => {
      const most = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt - 1, 10))
      const pause = most * (0.5 + Math.random() / 2)
      if (performance.now() + pause - began >= retryTimeoutMs) return false
      await quietly(() => delay(pause, undefined, { signal }))
      return !signal.aborted
    },
  }
}

/**
 * Clean-up and pauses that must not hide how the body ended: what they leave, the server ends itself.
 * @param {() => unknown} step
 */
export async function quietly(step) {
  try {
    await step()
  } catch {
    // Nothing to add: the outcome is already known.
  }
}
