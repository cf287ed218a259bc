/**
 * Connection strings: from the app's own to the one that the core's driver gets.
 *
 * Promises: an option that the two drivers treat differently is translated or refused by its name,
 * before anything connects; no refusal repeats a value. It does not promise that a string without a
 * problem is a good one: both drivers check what they read, and the core says so before it connects.
 */
import { suggest } from '../suggest.js'
import { REPEATABLE, URI_OPTIONS } from './uri-options.js'

/**
 * A connection string taken apart. Options keep their order; their values are decoded.
 * @typedef {object} Parts
 * @property {boolean} srv
 * @property {{ username: string, password: string | null } | null} credentials decoded
 * @property {string} hosts as written
 * @property {string} database decoded; empty when there is none
 * @property {[name: string, value: string][]} options
 */

const FORM =
  /^mongodb(?<srv>\+srv)?:\/\/(?:(?<username>[^:@]*)(?::(?<password>[^@]*))?@)?(?<hosts>[^/?@]+)(?<rest>.*)$/s
/** What the core's driver refuses in the path, where it only names the database of the user. */
const PATH_FORBIDS = /[/\\ "$]/

/**
 * @param {string} uri
 * @returns {Parts | string} what is wrong with it, phrased to read after a key
 */
export function parseUri(uri) {
  const groups = FORM.exec(uri)?.groups
  const credentials = /^[^:]+:\/\/[^?]*@/.test(uri)
  if (!groups || /^[^/?]*@/.test(groups.rest ?? '')) {
    return credentials ? UNESCAPED : 'must name a host: mongodb://host:port/database'
  }
  const { srv, username, password = null, hosts, rest = '' } = groups
  if (username === '') return 'has an @ without a user name before it'
  if (/[:/?#[\]@]/.test(`${username ?? ''}${password ?? ''}`)) return UNESCAPED
  const [path = '', ...query] = rest.trim().split('?')
  const options = [...new URLSearchParams(query.join('?'))]
  // The first @ was not the last: what looks like a host is a piece of the password.
  if (path.includes('@') || options.some(([name]) => name.includes('@'))) return UNESCAPED
  try {
    return {
      srv: srv !== undefined,
      credentials:
        username === undefined
          ? null
          : {
              username: decodeURIComponent(username),
              password: password === null ? null : decodeURIComponent(password),
            },
      hosts,
      database: decodeURIComponent(path.replace(/^\//, '')),
      options,
    }
  } catch {
    if (rest.includes('@')) return UNESCAPED
    return 'has a % that is not followed by two hexadecimal digits: a % itself is written %25'
  }
}

const UNESCAPED =
  'has a reserved character in the user name or the password: write it as encodeURIComponent does (@ is %40, : is %3A, / is %2F)'

/**
 * @param {Parts['options']} given
 * @returns {{ options: Parts['options'], problems: string[] }} what the core's driver gets; problems
 *   read after the key that holds the options
 */
export function translateOptions(given) {
  /** @type {string[]} */
  const problems = []
  /** @type {Parts['options']} */
  const options = []
  const seen = new Set()
  for (const [name, value] of given) {
    const verdict = verdictOn(name, value, seen.has(name.toLowerCase()))
    seen.add(name.toLowerCase())
    if ('refuse' in verdict) problems.push(verdict.refuse)
    else if (verdict.core !== null) options.push([name, verdict.core])
  }
  return { options, problems }
}

/**
 * @param {string} given
 * @param {string} value
 * @param {boolean} again
 * @returns {import('./uri-options.js').Verdict}
 */
function verdictOn(given, value, again) {
  const known = URI_OPTIONS.get(given.toLowerCase())
  if (!known) return { refuse: unknown(given) }
  const repeatable = given.toLowerCase() === REPEATABLE
  if (again && !repeatable) return { refuse: `has the option "${known.name}" more than once` }
  if (value === '' && !repeatable)
    return { refuse: `has the option "${known.name}" without a value` }
  const verdict = known.rule(value)
  if (!('refuse' in verdict)) return verdict
  return { refuse: `has the option "${known.name}", which can't be used: ${verdict.refuse}` }
}

/** @param {string} given a name that the table does not have */
function unknown(given) {
  // It may be the rest of a password with an & in it.
  if (!/^[a-z]+$/i.test(given)) return "has an option whose name can't be one of a driver"
  const names = [...URI_OPTIONS.values()].map(({ name }) => name)
  const meant = suggest(given, names)
  return `has the option "${given}", which is unknown${meant ? `: did you mean "${meant}"?` : ''}`
}

/**
 * What the Node driver finds missing and the core's doesn't.
 * @param {Parts} parts
 * @returns {string[]} read after a key
 */
export function missingOptions({ options, credentials }) {
  const set = new Map(options.map(([name, value]) => [name.toLowerCase(), value]))
  const mechanism = set.get('authmechanism')
  const problems = []
  const environment = /(^|,)ENVIRONMENT:/.test(set.get('authmechanismproperties') ?? '')
  if (mechanism === 'MONGODB-OIDC' && !environment) {
    problems.push('has the option "authMechanism" MONGODB-OIDC without an ENVIRONMENT')
  }
  if (mechanism?.startsWith('SCRAM') && credentials === null) {
    problems.push(`has the option "authMechanism" ${mechanism} without a user name`)
  }
  return problems
}

/**
 * @param {Parts} parts
 * @returns {string}
 */
export function formatUri({ srv, credentials, hosts, database, options }) {
  const all = [...options]
  const names = new Set(options.map(([name]) => name.toLowerCase()))
  const fits = !PATH_FORBIDS.test(database)
  if (!fits && credentials !== null && !names.has('authsource')) all.push(['authSource', database])
  const user = credentials === null ? '' : `${userinfo(credentials)}@`
  const path = fits ? encodeURIComponent(database) : ''
  const query = all.map((option) => option.map(encodeURIComponent).join('=')).join('&')
  return `mongodb${srv ? '+srv' : ''}://${user}${hosts}/${path}${query === '' ? '' : `?${query}`}`
}

/** @param {NonNullable<Parts['credentials']>} credentials */
function userinfo({ username, password }) {
  const name = encodeURIComponent(username)
  return password === null ? name : `${name}:${encodeURIComponent(password)}`
}
