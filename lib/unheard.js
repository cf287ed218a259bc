/**
 * Listeners of users that can't stop a run: what they throw, or reject with, has nowhere to go.
 */

/**
 * @template {unknown[]} A
 * @param {(...args: A) => unknown} listener
 * @returns {(...args: A) => void}
 */
export function unheard(listener) {
  return (...args) => {
    try {
      // Nobody awaits it, and a rejection that nobody handles ends the process.
      Promise.resolve(listener(...args)).catch(() => {})
    } catch {
      // The same, thrown at once.
    }
  }
}

/**
 * The methods of a listener, each by itself.
 * @template {string} M
 * @param {Record<M, (...args: any[]) => unknown>} listener
 * @param {readonly M[]} methods
 * @returns {Record<M, (...args: any[]) => void>}
 */
export function unheardMethods(listener, methods) {
  const made = methods.map((method) => [
    method,
    unheard((/** @type {unknown[]} */ ...args) => listener[method](...args)),
  ])
  return Object.fromEntries(made)
}
