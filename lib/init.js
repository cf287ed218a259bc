/**
 * Writes a first config file and makes the migrations directory.
 *
 * Promises: it asks nothing; what can be found out (the module system, whether TypeScript is in use,
 * what migrate-mongo was told) is found out. What it writes loads in that project without a warning,
 * every value is quoted, and an existing config file (of any format) is left alone unless `force`
 * says otherwise.
 */
import { access, mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { databaseIn } from './config/database-name.js'
import { secretsIn } from './config/secrets.js'
import { ConfigFileExistsError, InvalidArgumentError } from './errors.js'
import { readMigrateMongoConfig } from './migrate-mongo-config.js'
import { usesEsModules } from './package-type.js'

/** @import { MigrateMongoConfig } from './migrate-mongo-config.js' */

/** @typedef {{ uri: string | undefined, dbName: string | undefined, migrationsDir: string }} Values */

/**
 * @typedef {{
 *   format?: 'js' | 'ts' | 'json'
 *   force?: boolean
 *   secretProvider?: boolean
 *   cwd?: string
 * } & Partial<Values>} InitOptions
 */

/** In the order of discovery. */
const CONFIG_NAMES = ['ts', 'mts', 'js', 'mjs', 'cjs', 'json'].map((ext) => `mmk.config.${ext}`)

const DEFAULTS = {
  uri: 'mongodb://localhost:27017',
  dbName: 'my_app',
  migrationsDir: './migrations',
}

/**
 * @typedef {object} Initialised
 * @property {string} path of the config file, absolute
 * @property {MigrateMongoConfig | null} adopted the configuration that the values were taken from
 * @property {('uri' | 'dbName')[]} unset keys that runs need and the file doesn't set
 * @property {boolean} holdsSecret is there a password in the file?
 */

/**
 * @param {InitOptions} [options]
 * @returns {Promise<string>} the absolute path of the config file
 */
export async function initConfig(options) {
  return (await initProject(options)).path
}

/**
 * @param {InitOptions} [options]
 * @returns {Promise<Initialised>}
 */
export async function initProject(options = {}) {
  const { force = false, secretProvider = false, cwd = process.cwd() } = options
  const format = options.format ?? ((await usesTypeScript(cwd)) ? 'ts' : 'js')
  refuseFormat(format, secretProvider)
  const path = join(cwd, `mmk.config.${format}`)
  if (!force) await refuseExisting(cwd)
  const adopted = await readMigrateMongoConfig(cwd)
  const values = valuesOf(options, adopted)
  const text = configText(values, { format, secretProvider, esm: await usesEsModules(cwd) })
  await writeConfig(path, text, force)
  await mkdir(resolve(cwd, values.migrationsDir), { recursive: true })
  // A secret provider's URI is none of the file's text.
  const written = secretProvider ? { ...values, uri: '' } : values
  return { path, adopted, unset: unsetIn(written), holdsSecret: secretsIn(written).length > 0 }
}

/**
 * What migrate-mongo's file doesn't tell is left out: an example in its place would be another database,
 * which nobody would be told of.
 * @param {InitOptions} options
 * @param {MigrateMongoConfig | null} adopted
 * @returns {Values}
 */
function valuesOf(options, adopted) {
  const { uri, dbName } = adopted ?? DEFAULTS
  return {
    uri: options.uri ?? uri ?? undefined,
    dbName: options.dbName ?? dbName ?? undefined,
    migrationsDir: options.migrationsDir ?? adopted?.migrationsDir ?? DEFAULTS.migrationsDir,
  }
}

/**
 * @param {Values} values
 * @returns {Initialised['unset']}
 */
function unsetIn({ uri, dbName }) {
  /** @type {Initialised['unset']} */
  const unset = uri === undefined ? ['uri'] : []
  const named = dbName !== undefined || databaseIn(uri ?? '') !== null
  return named ? unset : [...unset, 'dbName']
}

/** @param {string} format @param {boolean} secretProvider */
function refuseFormat(format, secretProvider) {
  if (!['js', 'ts', 'json'].includes(format)) {
    throw new InvalidArgumentError(`Unknown config format "${format}": js, ts or json`, {
      context: { format },
    })
  }
  if (format === 'json' && secretProvider) {
    throw new InvalidArgumentError("A JSON config can't fetch secrets: use --js or --ts", {
      context: { format, secretProvider },
    })
  }
}

/** @param {string} cwd */
function usesTypeScript(cwd) {
  return isThere(join(cwd, 'tsconfig.json'))
}

/** @param {string} path */
function isThere(path) {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** @param {string} cwd */
async function refuseExisting(cwd) {
  for (const name of CONFIG_NAMES) {
    const path = join(cwd, name)
    if (await isThere(path)) throw alreadyThere(path)
  }
}

/** @param {string} path @param {string} text @param {boolean} force */
async function writeConfig(path, text, force) {
  try {
    await writeFile(path, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') throw alreadyThere(path)
    throw error
  }
}

/** @param {string} path */
function alreadyThere(path) {
  return new ConfigFileExistsError(`A config file is already there: ${path}`, {
    context: { path },
    hint: 'use --force to write over it',
  })
}

/**
 * The text of a config file. Pure.
 * @param {Values} values
 * @param {{ format: 'js' | 'ts' | 'json', secretProvider: boolean, esm: boolean }} shape
 * @returns {string}
 */
export function configText(values, { format, secretProvider, esm }) {
  if (format === 'json') return `${JSON.stringify(values, null, 2)}\n`
  const typed = format === 'ts'
  // A project that has its configuration in TypeScript wants its migrations in it too.
  const keys = typed ? { ...values, createExtension: 'ts' } : values
  const head = typed ? "import type { MmkConfig } from 'mongo-migrate-kit'\n\n" : ''
  const hint = typed ? '' : "/** @type {import('mongo-migrate-kit').MmkConfigInput} */\n"
  const type = typed ? ': Partial<MmkConfig>' : ''
  const out = typed || esm ? 'export default ' : 'module.exports = '
  if (secretProvider) return head + providerText(keys, { typed, out })
  return `${head}${hint}const config${type} = ${objectText(keys)}\n\n${out}config\n`
}

/** @param {Record<string, string | undefined>} values @param {{ typed: boolean, out: string }} shape */
function providerText(values, { typed, out }) {
  const result = typed ? ': Promise<string>' : ''
  const promise = typed ? ': Promise<Partial<MmkConfig>>' : ''
  const body = objectText({ ...values, uri: CALL }).replace(quote(CALL), CALL)
  return `// Ask your secret store here. It is asked once per command, and never printed.
async function readUri()${result} {
  const uri = process.env.DATABASE_URI
  if (!uri) throw new Error('DATABASE_URI is not set')
  return uri
}

${out}async function config()${promise} {
  return ${body.replaceAll('\n', '\n  ')}
}
`
}

const CALL = 'await readUri()'

/** @param {Record<string, string | undefined>} values */
function objectText(values) {
  const lines = Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [`  ${key}: ${quote(value)}`],
  )
  return `{\n${lines.join(',\n')}\n}`
}

/**
 * A single-quoted literal of any text: JSON's escapes are JavaScript's too.
 * @param {string} value
 */
function quote(value) {
  const inner = JSON.stringify(value).slice(1, -1).replaceAll("'", "\\'")
  return `'${inner}'`
}
