/**
 * Resolves the configuration: flags, argument, environment, file, defaults, key by key.
 *
 * Promises: either a complete, frozen configuration with the source of every value, or ONE
 * `CONFIG_INVALID` that lists every problem. It connects to nothing and prints nothing.
 */
import { basename, resolve } from 'node:path'
import { learnSecrets } from '../redact.js'
import { collectionIssues } from './collections.js'
import { connectionIssues } from './connection.js'
import { nameDatabase, URI_PATH } from './database-name.js'
import { envValue, loadDotEnv, unknownVariables } from './env.js'
import { readConfig } from './file.js'
import { findConfig, notFound, unreadNotes } from './find.js'
import { meantKey } from './meant.js'
import { configInvalid, howToSet, showValue } from './problems.js'
import { KEYS, OPTIONS } from './schema.js'
import { secretsIn } from './secrets.js'

/** @import { ConfigIssue, MmkConfig } from '../../index.d.ts' */
/** @import { Option } from './schema.js' */

export { toSettings } from './settings.js'

/** @typedef {'flag' | 'argument' | 'env' | 'file' | 'uri' | 'default'} Source */

/**
 * @typedef {object} Request
 * @property {object} [flags]
 * @property {object} [argument]
 * @property {string} [cwd]
 * @property {NodeJS.ProcessEnv} [env] what `.env` holds is added to it
 * @property {string} [configPath]
 * @property {boolean} [connects] `false`: nothing will connect, so `uri` and `dbName` may be missing
 */

/**
 * @typedef {object} Resolved
 * @property {Readonly<MmkConfig>} config `migrationsDir` is absolute
 * @property {Readonly<Record<string, Source>>} provenance
 * @property {Readonly<Record<string, string>>} origins the same in words: `MMK_URI in .env`
 * @property {string[]} warnings
 * @property {string | null} configFile absolute path
 */

/** @typedef {{ source: Source, label: (option: Option) => string, read: (option: Option) => any }} Layer */

/**
 * @param {Request} [request]
 * @returns {Promise<Resolved>}
 */
export async function resolveConfig(request = {}) {
  const { flags = {}, argument = {}, cwd = process.cwd(), env = process.env } = request
  const fromDotEnv = loadDotEnv(cwd, env)
  const { path: configFile, ignored, unread } = findConfig(cwd, request.configPath)
  const file = configFile === null ? {} : await readConfig(configFile)

  const fileLabel = configFile === null ? '' : basename(configFile)
  const layers = [
    objectLayer('flag', flags, (option) => option.flag?.split(' ')[0] ?? 'a command-line flag'),
    objectLayer('argument', argument, () => 'the object passed to runMigrations or MigratorKit'),
    envLayer(env, fromDotEnv),
    objectLayer('file', file, () => fileLabel),
  ]
  /** @type {ConfigIssue[]} */
  const issues = [
    ...unknownKeys(flags, 'the command-line flags'),
    ...unknownKeys(argument, 'the object passed to runMigrations or MigratorKit'),
    ...unknownKeys(file, fileLabel),
  ]
  const picked = OPTIONS.map((option) => pick(option, layers, issues))
  const values = Object.fromEntries(picked.map(({ key, value }) => [key, value]))
  const provenance = Object.fromEntries(picked.map(({ key, source }) => [key, source]))
  learnSecrets(secretsIn(values))
  const origins = Object.fromEntries(picked.map(({ key, from }) => [key, from]))
  issues.push(...collectionIssues(values, origins, issues))
  if (values.dbName === undefined) nameDatabase(values, provenance, issues)
  if (request.connects ?? true) {
    issues.push(...missingKeys(values), ...connectionIssues(values, layers, issues))
  }
  const aside = [...ignoredFiles(fileLabel, ignored), ...unreadNotes(unread)]
  const warnings = [...unknownVariables(env), ...aside]
  if (issues.length > 0) {
    const searched = configFile === null && missingKeys(values).length > 0
    const { note, hint } = searched ? notFound(cwd) : { note: [], hint: null }
    throw configInvalid(issues, { notes: [...note, ...warnings], hint })
  }

  values.migrationsDir = resolve(cwd, values.migrationsDir)
  return {
    config: Object.freeze(/** @type {MmkConfig} */ (values)),
    provenance: Object.freeze(provenance),
    origins: Object.freeze({
      ...origins,
      ...(provenance.dbName === 'uri' && { dbName: URI_PATH }),
    }),
    warnings,
    configFile,
  }
}

/**
 * @param {Source} source
 * @param {any} values
 * @param {Layer['label']} label
 * @returns {Layer}
 */
function objectLayer(source, values, label) {
  return { source, label, read: ({ key }) => values[key] }
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {Set<string>} fromDotEnv
 * @returns {Layer}
 */
function envLayer(env, fromDotEnv) {
  return {
    source: 'env',
    label: ({ env: name = '' }) =>
      fromDotEnv.has(name) ? `${name} in .env` : `the environment variable ${name}`,
    read: (option) => envValue(option, env),
  }
}

/**
 * The value of the first layer that has one. `null` is a value only for the logger.
 * @param {Option} option
 * @param {Layer[]} layers
 * @param {ConfigIssue[]} issues is added to
 * @returns {{ key: string, value: any, source: Source, from: string }}
 */
function pick(option, layers, issues) {
  const { key, check, secret, fallback } = option
  for (const { source, label, read } of layers) {
    const value = read(option)
    if (value === undefined || (value === null && key !== 'logger')) continue
    const problem = check(value)
    if (problem !== null) {
      const received = showValue(value, secret)
      issues.push({ key, problem, received, source: label(option), howToSet: howToSet(option) })
    }
    return { key, value, source, from: label(option) }
  }
  return { key, value: fallback, source: 'default', from: 'default' }
}

/**
 * @param {object} values
 * @param {string} source
 * @returns {ConfigIssue[]}
 */
function unknownKeys(values, source) {
  return Object.keys(values)
    .filter((key) => !KEYS.includes(key))
    .map((key) => {
      const meant = meantKey(key)
      return { key, problem: `is unknown${meant ? `: did you mean "${meant}"?` : ''}`, source }
    })
}

/**
 * @param {Record<string, unknown>} values
 * @returns {ConfigIssue[]}
 */
function missingKeys(values) {
  return OPTIONS.filter(({ key }) => key === 'uri' || key === 'dbName')
    .filter(({ key }) => values[key] === undefined)
    .map((option) => ({
      key: option.key,
      problem: 'is required but was not set',
      howToSet: howToSet(option),
    }))
}

/**
 * @param {string} used
 * @param {string[]} ignored
 */
function ignoredFiles(used, ignored) {
  return ignored.map((path) => `${basename(path)} is ignored, because there is a ${used} too`)
}
