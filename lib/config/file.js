/**
 * Finds and reads `mmk.config.*`: an object, or a sync or async function that makes one.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { ConfigInvalidError } from '../errors.js'
import { showValue } from './problems.js'

/** In the order of discovery. */
const DISCOVERED = ['.ts', '.mts', '.js', '.mjs', '.cjs', '.json']
const SUPPORTED = [...DISCOVERED, '.cts']

/**
 * @param {string} cwd
 * @param {string | undefined} configPath what the user named
 * @returns {Promise<{ path: string | null, ignored: string[] }>} absolute paths
 */
export async function findConfig(cwd, configPath) {
  if (configPath !== undefined) return { path: await namedConfig(cwd, configPath), ignored: [] }
  const paths = DISCOVERED.map((extension) => join(cwd, `mmk.config${extension}`))
  const [path = null, ...ignored] = paths.filter((path) => existsSync(path))
  return { path, ignored }
}

/**
 * @param {string} cwd
 * @param {string} configPath
 */
async function namedConfig(cwd, configPath) {
  const path = resolve(cwd, configPath)
  const extension = extname(path)
  if (!SUPPORTED.includes(extension)) {
    throw new ConfigInvalidError(
      `A configuration file must end in ${SUPPORTED.join(', ')}: ${path} does not`,
      { context: { path, extension } },
    )
  }
  if (existsSync(path)) return path
  throw new ConfigInvalidError(`The configuration file does not exist: ${path}`, {
    context: { path },
    hint: 'Check the path given with --config, or leave it out to find mmk.config.*',
  })
}

/**
 * @param {string} path absolute
 * @returns {Promise<Record<string, unknown>>}
 */
export async function readConfig(path) {
  const value = await (extname(path) === '.json' ? readJson(path) : readModule(path))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return /** @type {Record<string, unknown>} */ (value)
  }
  throw new ConfigInvalidError(
    `${path} must export an object, or a function that returns one: received ${showValue(value)}`,
    { context: { path, received: showValue(value) } },
  )
}

/** @param {string} path */
async function readJson(path) {
  try {
    return JSON.parse((await readFile(path, 'utf8')).replace(/^\uFEFF/, ''))
  } catch (error) {
    throw unreadable(path, error, messageOf(error))
  }
}

/** @param {string} path */
async function readModule(path) {
  const { importFile } = await import('../import-file.js')
  const loaded = await importFile(path)
  if (!loaded.ok) {
    throw unreadable(path, loaded.error, loaded.reason, loaded.at)
  }
  const exported = innermostDefault(loaded.exports)
  try {
    return await (typeof exported === 'function' ? exported() : exported)
  } catch (error) {
    throw unreadable(path, error, `its function failed: ${messageOf(error)}`)
  }
}

/**
 * Compilers wrap a default export once or twice.
 * @param {any} exports
 */
function innermostDefault(exports) {
  let value = exports
  for (let depth = 0; depth < 2 && hasDefault(value); depth += 1) value = value.default
  return value
}

/** Also one that is null: then that is what was exported. @param {any} value */
function hasDefault(value) {
  return typeof value === 'object' && value !== null && 'default' in value
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error)
}

/**
 * @param {string} path
 * @param {unknown} cause
 * @param {string} reason
 * @param {string | null} [at]
 */
function unreadable(path, cause, reason, at = null) {
  const place = at === null ? '' : ` (${at})`
  return new ConfigInvalidError(
    `Could not read the configuration file ${path}: ${reason}${place}`,
    {
      context: { path, cause: reason },
      cause,
    },
  )
}
