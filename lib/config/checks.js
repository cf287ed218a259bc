/**
 * Checks of single values. Each returns what is wrong, phrased to read after the key, or `null`.
 */

/** @typedef {(value: any) => string | null} Check */

const MAX_DB_NAME_BYTES = 63

/** @type {Check} */
export const text = (value) => {
  if (typeof value !== 'string') return 'must be a string'
  return value.trim() === '' ? 'must not be empty' : null
}

/** @type {Check} */
export const boolean = (value) => (typeof value === 'boolean' ? null : 'must be true or false')

/**
 * @param {number} least
 * @param {number} most
 * @param {string} unit
 * @returns {Check}
 */
export const integer = (least, most, unit) => (value) => {
  const fits = Number.isSafeInteger(value) && value >= least && value <= most
  return fits ? null : `must be a whole number of ${unit}, from ${least} to ${most}`
}

/**
 * @param {readonly string[]} choices
 * @returns {Check}
 */
export const oneOf = (choices) => (value) => {
  const list = choices.map((choice) => `"${choice}"`).join(choices.length > 2 ? ', ' : ' or ')
  return choices.includes(value) ? null : `must be ${choices.length > 2 ? 'one of ' : ''}${list}`
}

/** @type {Check} */
export const uri = (value) => {
  if (typeof value === 'string' && /^mongodb(\+srv)?:\/\/.+/.test(value)) return null
  return 'must be a connection string that starts with "mongodb://" or "mongodb+srv://"'
}

/** @type {Check} */
export const dbName = (value) => {
  const problem = text(value)
  if (problem) return problem
  if (/[/\\. "$*<>:|?\0]/.test(value)) {
    return 'must not contain blanks or any of / \\ . " $ * < > : | ?'
  }
  return Buffer.byteLength(value) > MAX_DB_NAME_BYTES
    ? `must not be longer than ${MAX_DB_NAME_BYTES} bytes`
    : null
}

/** @type {Check} */
export const collection = (value) => {
  const problem = text(value)
  if (problem) return problem
  const forbidden = /[$\0]/.test(value) || value.startsWith('system.') || value.startsWith('.')
  return forbidden ? 'must not contain $, nor start with "system." or a dot' : null
}

/** @type {Check} */
export const extensions = (value) => {
  const fine =
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((each) => typeof each === 'string' && /^\.[^/\\]+$/.test(each))
  return fine ? null : 'must be a list of file extensions, each starting with a dot'
}

/** @type {Check} */
export const object = (value) => {
  const fine = typeof value === 'object' && value !== null && !Array.isArray(value)
  return fine ? null : 'must be an object'
}

/** @type {Check} */
export const func = (value) => (typeof value === 'function' ? null : 'must be a function')

/** @type {Check} */
export const client = (value) => {
  const fine = typeof value?.db === 'function' && typeof value?.startSession === 'function'
  return fine ? null : 'must be a MongoClient of the mongodb package'
}

/** @type {Check} */
export const mongoose = (value) => {
  return typeof value?.connection === 'object' ? null : 'must be a Mongoose instance'
}

const LOGGER_METHODS = ['info', 'success', 'warn', 'error', 'dim']

/** @type {Check} */
export const logger = (value) => {
  if (value === null) return null
  const missing = LOGGER_METHODS.filter((method) => typeof value?.[method] !== 'function')
  return missing.length === 0
    ? null
    : `must be null or have the methods ${LOGGER_METHODS.join(', ')}; missing: ${missing.join(', ')}`
}

const HOOKS = ['beforeAll', 'beforeEach', 'afterEach', 'afterAll', 'onError']

/** @type {Check} */
export const hooks = (value) => {
  if (object(value)) return object(value)
  for (const [name, hook] of Object.entries(value)) {
    if (!HOOKS.includes(name)) return `has an unknown hook "${name}": ${HOOKS.join(', ')} exist`
    if (hook !== undefined && typeof hook !== 'function') return `must have a function as "${name}"`
  }
  return null
}
