/**
 * Takes secrets out of text, for every output that we have: messages, contexts, logs, JSON.
 *
 * Promises: credentials in a MongoDB URI never come through, however deformed the URI is (unescaped
 * `@`, `/`, `:` or blanks in the password, a wrong scheme, quotes around it); nor do the secrets that
 * travel in its query. Host names stay where a URI is well formed; where it isn't, all of it goes. A
 * secret of a configuration that this process has read is known wherever it stands, unless it could
 * be a word. It does not promise to know any other password that stands alone in a sentence.
 */

const HIDDEN = '***'

const HOST = String.raw`(?:\[[\da-f:.%]+\]|[\w%.-]+)(?::\d{1,5})?`
/** Scheme left off: credentials, hosts, path, query, none of which hides a second `@`. */
const WELL_FORMED = new RegExp(
  String.raw`^(?:(?<user>[^\s:@/]*)(?::[^\s@/]*)?@)?(?<rest>${HOST}(?:,${HOST})*(?:[/?][^\s@]*)?)$`,
  'i',
)

/** A scheme; for MongoDB's also with a slash too few, where credentials follow. */
const ADDRESS_START = /[a-z][a-z\d+.-]*:\/\/|\bmongo[a-z+]*:\/?(?=[^\s/]*:[^\s]*@)/gi

/** Schemes whose addresses carry no credentials and may well contain an `@`. */
const PLAIN_SCHEMES = new Set(['file', 'node', 'data', 'webpack'])
const WEB_SCHEMES = new Set(['http', 'https', 'ws', 'wss', 'ftp', 'git', 'ssh'])

const QUERY_SECRETS = [
  /(AWS_(?:SESSION_TOKEN|SECRET_ACCESS_KEY)\s*["']?(?:%3A|[:=])\s*["']?)[^\s,&"'}]+/gi,
  /\b((?:tlsCertificateKeyFilePassword|sslPass|sslKeyPass(?:word)?|proxyPassword|passphrase)["']?\s*[:=]\s*["']?)[^\s,&"'}]+/gi,
  /\b((?:password|passwd|pwd)["']?\s*(?:=\s*|:\s*(?=["'])))(?:"[^"]*"|'[^']*'|[^\s,&"'}]+)/gi,
  /([?&][\w-]*(?:pass|secret|token)[\w-]*=)[^\s&"']+/gi,
]

/** `user:password@host` without a scheme. A path (as in `.pnpm/mongodb@7`) is not one. */
const BARE_CREDENTIALS = /(?<![\w./\\-])[^\s:@/\\"'`(<]*:[^\s@/\\"'`][^\s@\\"'`]*@(?=[\w[])/g

/** @param {string} text */
function redactQuery(text) {
  return QUERY_SECRETS.reduce((rest, secret) => rest.replace(secret, `$1${HIDDEN}`), text)
}

/**
 * The part of a well-formed address after its scheme, without secrets; `null` when it is deformed.
 * @param {string} address
 */
function redactAddress(address) {
  const groups = WELL_FORMED.exec(address)?.groups
  if (!groups?.rest) return null
  const credentials = groups.user === undefined ? '' : `${HIDDEN}:${HIDDEN}@`
  return credentials + redactQuery(groups.rest)
}

/**
 * Replaces the address that starts `rest` (the text behind `scheme://`, up to the end of its line).
 * @param {string} scheme
 * @param {string} rest
 * @returns {[shown: string, consumed: number]}
 */
function replaceAddress(scheme, rest) {
  const token = /^[^\s"'`<>]*/.exec(rest)?.[0] ?? ''
  if (PLAIN_SCHEMES.has(scheme.toLowerCase())) return [token, token.length]
  if (WEB_SCHEMES.has(scheme.toLowerCase())) {
    return [redactQuery(token.replace(/^[^/?#]*@/, `${HIDDEN}:${HIDDEN}@`)), token.length]
  }
  const bare = token.replace(/[).,;:\]}]+$/, '')
  const shown = redactAddress(bare)
  if (shown !== null) return [shown, bare.length]
  const lastAt = rest.lastIndexOf('@')
  if (token === '' && lastAt === -1) return ['', 0]
  const tail = /^[^\s"'`<>]*/.exec(rest.slice(lastAt + 1))?.[0] ?? ''
  return [HIDDEN, lastAt === -1 ? token.length : Math.max(token.length, lastAt + 1 + tail.length)]
}

/** @param {string} line */
function redactLine(line) {
  let shown = ''
  let from = 0
  for (const match of line.matchAll(ADDRESS_START)) {
    if (match.index < from) continue
    const start = match.index + match[0].length
    const [address, consumed] = replaceAddress(match[0].split(':')[0], line.slice(start))
    shown += redactBare(line.slice(from, match.index)) + match[0] + address
    from = start + consumed
  }
  return shown + redactBare(line.slice(from))
}

/** @param {string} text without an address in it */
function redactBare(text) {
  return redactQuery(text.replace(BARE_CREDENTIALS, `${HIDDEN}:${HIDDEN}@`))
}

/**
 * From now on these are secrets. What could be a word is not learned: it would blank out file names
 * and sentences, and hide nothing.
 * @param {readonly string[]} secrets
 */
export function learnSecrets(secrets) {
  for (const secret of secrets) {
    if (secret.length < SHORTEST_SECRET || !/[^a-z_-]/i.test(secret)) continue
    known.delete(secret)
    known.add(secret)
  }
  for (const oldest of known) {
    if (known.size <= MAX_KNOWN) break
    known.delete(oldest)
  }
}

/** A shorter one might be part of a number or of a name. */
const SHORTEST_SECRET = 8
/** Of an app that connects to many databases, the latest. */
const MAX_KNOWN = 300
/** @type {Set<string>} in the order in which they were learned */
const known = new Set()

/**
 * Any text without the secrets in it.
 * @param {string} text
 * @returns {string}
 */
export function redact(text) {
  let rest = text
  for (const secret of known) rest = rest.replaceAll(secret, HIDDEN)
  return rest.split('\n').map(redactLine).join('\n')
}

/**
 * Where a scheme was forgotten: names and ports that can't be a user and a password. Any other
 * `word:word` can, and any word alone.
 */
const SURE_HOST = String.raw`(?:localhost|(?:\d{1,3}\.){3}\d{1,3}|\[[\da-f:.]+\])(?::\d{1,5})?|[\w.-]+:270(?:1[7-9]|2\d)`
const SCHEMELESS = new RegExp(
  String.raw`^(?<address>(?:${SURE_HOST})(?:,(?:${SURE_HOST}))*(?:/[\w-]*)?)(?<query>\?[^@]*)?$`,
  'i',
)

/**
 * A value that is meant to be one whole URI, without its secrets.
 * @param {string} uri
 * @returns {string}
 */
export function redactUri(uri) {
  const match = /^(mongodb(?:\+srv)?:\/\/)(.*)$/s.exec(uri)
  const shown = match && redactAddress(match[2])
  if (match && shown !== null) return match[1] + shown
  const schemeless = SCHEMELESS.exec(uri)?.groups
  if (schemeless) return schemeless.address + (schemeless.query === undefined ? '' : `?${HIDDEN}`)
  const scheme = /^[\s"'`]*([a-z][a-z\d+.-]*:\/\/)/i.exec(uri)
  return scheme ? `${scheme[1]}${HIDDEN}` : HIDDEN
}

/**
 * Plain data with every text in it redacted. What is not plain data is left as it is.
 * @template T
 * @param {T} value
 * @param {number} [depth]
 * @returns {T}
 */
export function redactData(value, depth = 8) {
  /** @type {any} */
  let copy = value
  if (typeof value === 'string') copy = redact(value)
  else if (depth > 0 && Array.isArray(value))
    copy = value.map((item) => redactData(item, depth - 1))
  else if (depth > 0 && isPlainObject(value)) {
    copy = Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, redactData(item, depth - 1)]),
    )
  }
  return copy
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isPlainObject(value) {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
