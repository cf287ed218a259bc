/**
 * The secrets of a configuration, so that they are known wherever they turn up.
 */

const SECRET_OPTION = /pass|token|secret/i
const SESSION_TOKEN = /AWS_SESSION_TOKEN(?::|%3A)([^,&]+)/gi

/**
 * @param {Record<string, any>} values of the configuration, checked or not
 * @returns {string[]} as they stand there, and decoded where they were encoded
 */
export function secretsIn({ uri, lockUri, mongoClientOptions }) {
  const found = [uri, lockUri].flatMap((each) => (typeof each === 'string' ? inUri(each) : []))
  return [...found, ...inOptions(mongoClientOptions, 3)].flatMap(forms)
}

/**
 * However deformed: what stands before the last `@` holds the password, with a `/` or an `@` in it.
 * @param {string} uri
 */
function inUri(uri) {
  const credentials = /:\/\/[^:]*:(.*)@/s.exec(uri)?.[1]
  const query = new URLSearchParams(uri.slice(uri.lastIndexOf('@') + 1).split('?')[1] ?? '')
  const options = [...query].filter(([name]) => SECRET_OPTION.test(name)).map(([, value]) => value)
  const tokens = [...uri.matchAll(SESSION_TOKEN)].map(([, token]) => token)
  return [...(credentials === undefined ? [] : [credentials]), ...options, ...tokens]
}

/**
 * @param {unknown} options
 * @param {number} depth
 * @returns {string[]}
 */
function inOptions(options, depth) {
  if (typeof options !== 'object' || options === null || depth === 0) return []
  return Object.entries(options).flatMap(([name, value]) => {
    if (typeof value !== 'string') return inOptions(value, depth - 1)
    if (/^authMechanismProperties$/i.test(name)) {
      return [...value.matchAll(SESSION_TOKEN)].map(([, token]) => token)
    }
    return SECRET_OPTION.test(name) && !/file$/i.test(name) ? [value] : []
  })
}

/** @param {string} secret */
function forms(secret) {
  try {
    const decoded = decodeURIComponent(secret)
    return [secret, decoded, encodeURIComponent(decoded)]
  } catch {
    return [secret, encodeURIComponent(secret.toWellFormed())]
  }
}
