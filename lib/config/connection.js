/**
 * How the core connects: by `uri` and what `mongoClientOptions` add to it, or by `lockUri` alone.
 *
 * Promises: what matters to a connection reaches both drivers, or is refused by name beside the key
 * that it stands in; as in the Node driver, an option in `mongoClientOptions` wins over the one in
 * the URI. It reads the certificates' files and connects to nothing.
 */
import { readFileSync } from 'node:fs'
import { clientOptions } from './client-options.js'
import { howToSet, showValue } from './problems.js'
import { OPTIONS } from './schema.js'
import { formatUri, missingOptions, parseUri, translateOptions } from './uri.js'

/** @import { ConfigIssue } from '../../index.d.ts' */
/** @import { Option } from './schema.js' */
/** @import { Parts } from './uri.js' */

/**
 * @typedef {object} CoreConnection
 * @property {string} uri
 * @property {string | null} apiVersion of `serverApi`
 * @property {{ key: string, problem: string }[]} problems with any,
 *   the rest means nothing
 */

/**
 * @param {{ uri?: string, lockUri?: string, mongoClientOptions?: object }} config
 * @returns {CoreConnection}
 */
export function coreConnection({ uri = '', lockUri, mongoClientOptions = {} }) {
  const key = lockUri === undefined ? 'uri' : 'lockUri'
  const parts = parseUri(lockUri ?? uri)
  if (typeof parts === 'string') {
    return { uri: '', apiVersion: null, problems: [{ key, problem: parts }] }
  }
  // With a lockUri, these belong to the bodies' client.
  const theirs = lockUri === undefined ? mongoClientOptions : {}
  const added = clientOptions(/** @type {Record<string, unknown>} */ (theirs))
  const kept = parts.options.filter(([name]) => !added.names.has(name.toLowerCase()))
  const [own, more] = [translateOptions(kept), translateOptions(added.options)]
  const merged = {
    ...parts,
    credentials: added.credentials ?? parts.credentials,
    database: added.database ?? parts.database,
    options: [...kept, ...added.options],
  }
  const ownProblems = [...own.problems, ...fileProblems(kept), ...missingOptions(merged)]
  const moreProblems = [...added.problems, ...more.problems, ...fileProblems(added.options)]
  return {
    uri: formatUri({ ...merged, options: [...own.options, ...more.options] }),
    apiVersion: added.apiVersion,
    problems: [
      ...ownProblems.map((problem) => ({ key, problem })),
      ...moreProblems.map((problem) => ({ key: 'mongoClientOptions', problem })),
    ],
  }
}

/**
 * A missing file would be found by each driver in its own time and words, and a key in a form that
 * only one of them reads by that one alone.
 * @param {Parts['options']} options
 * @returns {string[]}
 */
function fileProblems(options) {
  const problems = []
  for (const [name, path] of options) {
    if (!/^tls(CA|CertificateKey)File$/i.test(name) || path === '') continue
    const problem = fileProblem(path)
    if (problem) problems.push(`has the option "${name}", whose file ${problem}: ${path}`)
  }
  return problems
}

/** @param {string} path */
function fileProblem(path) {
  let pem
  try {
    pem = readFileSync(path, 'latin1')
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    return code === 'ENOENT' ? 'does not exist' : `can't be read (${code})`
  }
  if (/^Proc-Type: 4,ENCRYPTED/m.test(pem)) {
    return 'holds an encrypted key in the old form, which one of the two drivers does not read (convert it with `openssl pkcs8 -topk8`)'
  }
  return pem.includes('-----BEGIN ') ? null : 'holds no PEM text'
}

/**
 * What one of the two drivers could not use. Only of values that are in order as such.
 * @param {Record<string, any>} values
 * @param {{ label: (option: Option) => string, read: (option: Option) => any }[]} layers
 * @param {ConfigIssue[]} issues so far
 * @returns {ConfigIssue[]}
 */
export function connectionIssues(values, layers, issues) {
  const keys = ['uri', 'lockUri', 'mongoClientOptions']
  if (values.uri === undefined || issues.some(({ key }) => keys.includes(key))) return []
  return coreConnection(values).problems.map(({ key, problem }) => {
    const option = /** @type {Option} */ (OPTIONS.find((each) => each.key === key))
    const source = layers.find(({ read }) => (read(option) ?? null) !== null)?.label(option)
    const value = option.secret ? withoutQuery(values[key]) : values[key]
    const received = showValue(value, option.secret)
    return { key, problem, received, howToSet: howToSet(option), ...(source && { source }) }
  })
}

/**
 * The problem names the option; the rest of the query may be a piece of a secret with an & in it.
 * @param {string} uri
 */
function withoutQuery(uri) {
  const query = uri.indexOf('?', uri.lastIndexOf('@') + 1)
  return query === -1 ? uri : uri.slice(0, query)
}
