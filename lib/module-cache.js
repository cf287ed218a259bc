/**
 * Which version of a file a process should load: modules are cached for as long as it lives, and
 * files change.
 *
 * Promises: a file that has changed since it was loaded here, or that is wanted fresh, is read again;
 * otherwise a second load gives the same module. It renews that file alone: what it imports may come
 * from the cache.
 */
import { createHash } from 'node:crypto'
import { readFile, realpath } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/** @type {Map<string, { digest: string, query: string }>} by path */
const loaded = new Map()
let versions = 0

/**
 * Must be asked before each load of a file.
 * @param {string} path absolute
 * @param {boolean} fresh
 * @returns {Promise<string>} the URL to import
 */
export async function currentUrl(path, fresh) {
  const digest = await digestOf(path)
  const before = loaded.get(path)
  const renewed = fresh || (before !== undefined && before.digest !== digest)
  let query = before?.query ?? ''
  if (renewed) {
    await forgetRequired(path)
    versions += 1
    query = `?version=${versions}`
  }
  loaded.set(path, { digest, query })
  return pathToFileURL(path).href + query
}

/**
 * CommonJS modules, and those that jiti makes, are cached by path.
 * @param {string} path
 */
async function forgetRequired(path) {
  const { cache } = createRequire(import.meta.url)
  delete cache[path]
  delete cache[await realpath(path).catch(() => path)]
}

/**
 * A file that can't be read fails where it is loaded.
 * @param {string} path
 */
async function digestOf(path) {
  const bytes = await readFile(path).catch(() => '')
  return createHash('sha256').update(bytes).digest('hex')
}
