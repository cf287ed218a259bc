/**
 * `mongoClientOptions` as options of a connection string, for the core's driver.
 *
 * Promises: every option crosses, concerns the bodies' client alone, or is a problem by its name; no
 * problem repeats a value. Nothing in the object is called or changed.
 */

/** @import { Parts } from './uri.js' */

/**
 * @typedef {object} Added
 * @property {Parts['options']} options
 * @property {ReadonlySet<string>} names in lower case: what the URI says of these counts no more
 * @property {Parts['credentials']} credentials
 * @property {string | null} database
 * @property {string | null} apiVersion
 * @property {string[]} problems
 */

/** Only for bodies, and no text: how documents are read and written, and what is told of it. */
const BODIES_ONLY = new Set(
  (
    'readPreference readPreferenceTags readConcern writeConcern driverInfo pkFactory fieldsAsRaw ' +
    'autoEncryption runtimeAdapters mongodbLogPath mongodbLogComponentSeverities hints session ' +
    'srvHostValidator srvAllowedHostsSuffix ALPNProtocols requestOCSP requestCert enableTrace name'
  )
    .toLowerCase()
    .split(' '),
)

/**
 * @param {Record<string, unknown>} given
 * @returns {Added}
 */
export function clientOptions(given) {
  const set = Object.entries(given).filter(([, value]) => value !== undefined && value !== null)
  /** @type {Parts['options']} */
  const options = []
  /** @type {string[]} */
  const problems = []
  /** @type {Omit<Added, 'options' | 'problems' | 'names'>} */
  const apart = { credentials: null, database: null, apiVersion: null }
  for (const [name, value] of set) {
    if (BODIES_ONLY.has(name.toLowerCase()) || setApart(apart, name, value)) continue
    const text = textOf(name, value)
    if (text === null) problems.push(`has the option "${name}", which ${CANNOT_CROSS}`)
    else if (name.toLowerCase() === 'loadbalanced') problems.push(URI_ALONE)
    else options.push([name, text])
  }
  if (apart.apiVersion !== null && apart.apiVersion !== '1') {
    problems.push('has the option "serverApi" with a version that is not "1"')
  }
  const names = new Set(set.map(([name]) => name.toLowerCase()))
  return { ...apart, options, names, problems }
}

const CANNOT_CROSS =
  "can't be used: it is not text, and the lock's own connection needs it too. Set lockUri, a connection string for that connection"
const URI_ALONE = 'has the option "loadBalanced", which the Node driver takes in the URI alone'

/**
 * What has no place in the query of a connection string.
 * @param {Omit<Added, 'options' | 'problems' | 'names'>} apart is added to
 * @param {string} name
 * @param {any} value
 * @returns {boolean} was it one of these?
 */
function setApart(apart, name, value) {
  switch (name.toLowerCase()) {
    case 'auth':
      apart.credentials = { username: String(value.username), password: value.password ?? null }
      return true
    case 'dbname':
      apart.database = String(value)
      return true
    case 'serverapi':
      apart.apiVersion = String(value.version ?? value)
      return true
    default:
      return false
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {string | null} `null`: it is nothing that text can say
 */
function textOf(name, value) {
  if (Array.isArray(value) && name.toLowerCase() === 'compressors') return value.join(',')
  if (name.toLowerCase() === 'authmechanismproperties') return properties(value)
  // Certificates and keys are refused by their names, which says what to do instead.
  if (/^(ca|cert|key|pfx|crl|lookup|securecontext)$/i.test(name)) return 'given'
  if (/^(check|sni|psk)/i.test(name) && typeof value === 'function') return 'given'
  return isScalar(value) ? String(value) : null
}

/** @param {unknown} value */
function properties(value) {
  if (typeof value === 'string') return value
  const entries = Object.entries(/** @type {object} */ (value))
  const fits = entries.every(([, each]) => isScalar(each) && !String(each).includes(','))
  return fits ? entries.map(([name, each]) => `${name}:${each}`).join(',') || null : null
}

/** @param {unknown} value */
function isScalar(value) {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
