/** Values of flags: text in, a checked value out, or a usage error that says what was expected. */
import { InvalidArgumentError as InvalidValue } from './commander.js'

/** @typedef {import('./main.js').Globals} Globals */

/**
 * @param {string} text
 * @returns {number}
 */
export function positiveInteger(text) {
  if (/^\d+$/.test(text) && Number(text) >= 1 && Number.isSafeInteger(Number(text))) {
    return Number(text)
  }
  throw new InvalidValue('A whole number of at least 1 is expected.')
}

/**
 * The global flags under their configuration keys; what wasn't given is left out.
 * @param {Globals} globals
 */
export function configOf({ uri, db, dir, namespace, lockTtl }) {
  const given = { uri, dbName: db, migrationsDir: dir, namespace, lockTTLSeconds: lockTtl }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
