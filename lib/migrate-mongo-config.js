/**
 * The configuration of migrate-mongo, read for `mmk init` so that nothing has to be typed again.
 *
 * Promises: a URI that is not written in that file (it was put together from the environment) is not
 * handed on, because what `init` writes is likely to be committed.
 */
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { importFile } from './import-file.js'

/**
 * @typedef {object} MigrateMongoConfig
 * @property {string} file its name
 * @property {string | null} uri `null`: not written in the file
 * @property {string | null} dbName
 * @property {string | null} migrationsDir
 * @property {string | null} changelog the collection, where it is not migrate-mongo's default
 */

const NAMES = ['js', 'mjs', 'cjs', 'ts'].map((extension) => `migrate-mongo-config.${extension}`)
const DEFAULT_CHANGELOG = 'changelog'

/**
 * @param {string} cwd
 * @returns {Promise<MigrateMongoConfig | null>} `null`: there is none, or none that can be read
 */
export async function readMigrateMongoConfig(cwd) {
  for (const name of NAMES) {
    const source = await readFile(join(cwd, name), 'utf8').catch(() => null)
    if (source !== null) return readOne(join(cwd, name), source)
  }
  return null
}

/** @param {string} path @param {string} source */
async function readOne(path, source) {
  const loaded = await importFile(path)
  if (!loaded.ok) return null
  try {
    return adopt(await (loaded.exports.default ?? loaded.exports), basename(path), source)
  } catch {
    // A promise that rejects, a getter that throws: it is no more than a convenience to us.
    return null
  }
}

/**
 * @param {any} config
 * @param {string} file
 * @param {string} source
 * @returns {MigrateMongoConfig | null}
 */
function adopt(config, file, source) {
  if (typeof config?.mongodb !== 'object' || config.mongodb === null) return null
  const uri = textOf(config.mongodb.url)
  const changelog = textOf(config.changelogCollectionName)
  return {
    file,
    uri: uri !== null && source.includes(uri) ? uri : null,
    dbName: textOf(config.mongodb.databaseName),
    migrationsDir: textOf(config.migrationsDir),
    changelog: changelog === DEFAULT_CHANGELOG ? null : changelog,
  }
}

/** @param {unknown} value */
const textOf = (value) => (typeof value === 'string' && value.trim() !== '' ? value : null)
