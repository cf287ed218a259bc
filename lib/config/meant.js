/**
 * Which option was probably meant by a name that isn't one. Pure.
 *
 * An option has several names (its key, its variable, its flag), people write each in the style of the
 * others, and those who come from another tool use that tool's. So names are compared without their
 * case and separators, and only then is a slip of the finger looked for.
 */
import { suggest } from '../suggest.js'
import { ENV_NAMES, KEYS, OPTIONS } from './schema.js'

/** @import { Option } from './schema.js' */

/**
 * What other tools and drivers call the same thing, by our key.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const SYNONYMS = {
  uri: ['url', 'connectionString', 'databaseUri', 'databaseUrl'],
  dbName: ['database', 'databaseName'],
  migrationsCollection: ['changelog', 'changelogCollection', 'changelogCollectionName'],
  lockCollection: ['lockCollectionName'],
  fileExtensions: ['migrationFileExtension'],
}

/** In a shorter name, two slips leave nothing of the word. */
const SHORTEST_WITH_SLIPS = 5

/** @type {ReadonlyMap<string, Option>} by every name, as `plain` has it */
const BY_NAME = new Map(OPTIONS.flatMap((option) => namesOf(option).map((name) => [name, option])))

/** @param {Option} option */
function namesOf({ key, env = '', flag = '' }) {
  const names = [key, env, flag.split(' ')[0], ...(SYNONYMS[key] ?? [])]
  return names.map(plain).filter((name) => name !== '')
}

/** @param {string} name */
function plain(name) {
  return name
    .replace(/^MMK_/, '')
    .replace(/[^a-z\d]/gi, '')
    .toLowerCase()
}

/**
 * @param {string} key that is unknown
 * @returns {string | null} the key that was meant
 */
export function meantKey(key) {
  return sameName(key)?.key ?? suggest(key, KEYS) ?? withSlips(key)?.key ?? null
}

/**
 * @param {string} name of a variable that is unknown
 * @returns {Option | null} the option that was meant, which need not have a variable
 */
export function meantOption(name) {
  const meant = sameName(name)
  if (meant !== null) return meant
  const variable = suggest(name, ENV_NAMES)
  if (variable === null) return withSlips(name)
  return OPTIONS.find(({ env }) => env === variable) ?? null
}

/** @param {string} name @returns {Option | null} */
function sameName(name) {
  const word = plain(name)
  // MMK_MONGO_URI, mongodbUrl: there is no other database here.
  return BY_NAME.get(word) ?? BY_NAME.get(word.replace(/^mongo(db)?/, '')) ?? null
}

/** @param {string} name @returns {Option | null} */
function withSlips(name) {
  const word = plain(name)
  const meant = word.length < SHORTEST_WITH_SLIPS ? null : suggest(word, [...BY_NAME.keys()])
  return meant === null ? null : (BY_NAME.get(meant) ?? null)
}
