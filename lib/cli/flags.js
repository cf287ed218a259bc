/** The global flags, as configuration. */

/**
 * @typedef {{
 *   uri?: string
 *   db?: string
 *   dir?: string
 *   config?: string
 *   namespace?: string
 *   lockTtl?: number
 *   json?: '1' | '2'
 *   jsonLines?: boolean
 *   verbose?: boolean
 *   utc?: boolean
 * }} Globals
 */

/**
 * Under their configuration keys; what wasn't given is left out.
 * @param {Globals} globals
 */
export function configOf({ uri, db, dir, namespace, lockTtl }) {
  const given = { uri, dbName: db, migrationsDir: dir, namespace, lockTTLSeconds: lockTtl }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
