/**
 * Reads `mmk.config.*`: an object, or a sync or async function that makes one.
 */
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { ConfigInvalidError } from '../errors.js'
import { showValue } from './problems.js'

/**
 * @param {string} path absolute
 * @returns {Promise<Record<string, unknown>>}
 */
export async function readConfig(path) {
  const value = await (extname(path) === '.json' ? readJson(path) : readModule(path))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return readable(path, value)
  }
  throw new ConfigInvalidError(
    `${path} must export an object, or a function that returns one: received ${showValue(value)}`,
    { context: { path, received: showValue(value) } },
  )
}

/**
 * Reads every value once: what a getter throws is the file's fault, wherever it would be read.
 * @param {string} path
 * @param {object} config
 * @returns {Record<string, any>}
 */
function readable(path, config) {
  try {
    Object.values(config)
    return config
  } catch (error) {
    throw unreadable(path, error, `one of its values failed: ${messageOf(error)}`)
  }
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
