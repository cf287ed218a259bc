/**
 * Loads one JavaScript or TypeScript file of the user's, whatever kind of project it lies in.
 *
 * Promises: Node's own loader (or one that is registered, such as tsx) is asked first, so a file
 * shares its modules with the app; what Node can't load (TypeScript before Node 22, enums, imports
 * without extension, ES syntax in a CommonJS package, CommonJS in an ES package) goes through jiti.
 * Nothing is written. A file whose own code throws is not tried twice. It does not promise decorated
 * class fields.
 */
import { readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { locationOf } from './location.js'
import { currentUrl } from './module-cache.js'

/**
 * @typedef {{ ok: true, exports: any }
 *   | { ok: false, error: unknown, reason: string, at: string | null }} Loaded
 *   `at` is `path:line:column`, the column left out where nobody knows it
 */

const TYPESCRIPT = ['.ts', '.mts', '.cts']

/** Names of loaders that teach Node TypeScript, as they stand on its command line. */
const REGISTERED_LOADER = /\b(?:tsx|ts-node|jiti)\b|@swc-node|@oxc-node|esbuild-register/

/** What Node's loader says when the file may be fine but is not for it (tsx: `TransformError`). */
const NOT_FOR_NODE = new Set([
  'ERR_UNKNOWN_FILE_EXTENSION',
  'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
  'ERR_INVALID_TYPESCRIPT_SYNTAX',
  'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING',
  'ERR_MODULE_NOT_FOUND',
  'ERR_UNSUPPORTED_DIR_IMPORT',
  'ERR_IMPORT_ATTRIBUTE_MISSING',
  'ERR_REQUIRE_ESM',
])

const ES_SYNTAX = /^\s*(?:import\s*(?:[\w{*]|["'])|export\s*[\w{*])/m

/**
 * @param {string} path absolute
 * @param {{ fresh?: boolean }} [options] `fresh`: read it anew, whatever was loaded before
 * @returns {Promise<Loaded>}
 */
export async function importFile(path, { fresh = false } = {}) {
  const url = await currentUrl(path, fresh)
  if (!(await nodeMayLoad(path))) return viaJiti(path, null)
  try {
    return { ok: true, exports: await import(url) }
  } catch (error) {
    return isForJiti(path, error) ? viaJiti(path, error) : failed(error)
  }
}

/** @param {string} path */
async function nodeMayLoad(path) {
  if (loaderRegistered()) return true
  const extension = extname(path)
  if (TYPESCRIPT.includes(extension) && !nodeKnowsTypeScript()) return false
  if (extension !== '.js' && extension !== '.ts') return true
  // Node fails on ES syntax in such a package after a warning that would confuse the reader.
  return !((await packageType(path)) === 'commonjs' && ES_SYNTAX.test(await readText(path)))
}

function nodeKnowsTypeScript() {
  const { bun, deno } = process.versions
  return Boolean(bun || deno || ('typescript' in process.features && process.features.typescript))
}

function loaderRegistered() {
  return REGISTERED_LOADER.test([...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' '))
}

/**
 * `type` of the nearest package.json.
 * @param {string} path
 */
async function packageType(path) {
  for (let dir = dirname(path), below = path; dir !== below; below = dir, dir = dirname(dir)) {
    const text = await readText(join(dir, 'package.json'))
    if (text !== '') return /"type"\s*:\s*"(\w+)"/.exec(text)?.[1]
  }
  return undefined
}

/** @param {string} path */
async function readText(path) {
  return readFile(path, 'utf8').catch(() => '')
}

/**
 * @param {string} path
 * @param {any} error
 */
function isForJiti(path, error) {
  try {
    if (NOT_FOR_NODE.has(error.code) || error.name === 'TransformError') return true
    const message = String(error.message)
    if (error.name === 'ReferenceError') return message.includes('in ES module scope')
    // A type imported by name looks like a missing export; in JavaScript it is a missing export.
    const missingExport = message.includes('does not provide an export named')
    return error.name === 'SyntaxError' && !(missingExport && !TYPESCRIPT.includes(extname(path)))
  } catch {
    return false
  }
}

/**
 * @param {string} path
 * @param {unknown} nodeError what Node's own loader said, if it was asked
 * @returns {Promise<Loaded>}
 */
async function viaJiti(path, nodeError) {
  const { createJiti } = await import('jiti')
  const jiti = createJiti(path, { fsCache: false, interopDefault: false })
  try {
    return { ok: true, exports: await jiti.import(path) }
  } catch (error) {
    const parsed = parseError(error)
    if (!parsed) return failed(error)
    const cause = nodeError instanceof SyntaxError ? nodeError : error
    return { ok: false, error: cause, ...parsed, ...saidByNode(nodeError) }
  }
}

/**
 * jiti's "ParseError: what\n path:line:column".
 * @param {any} error
 */
function parseError(error) {
  const match = /^ParseError: (.*?)\s*\n\s*(\S.*:\d+:\d+)\s*$/s.exec(String(error?.message))
  return match ? { reason: match[1], at: match[2] } : null
}

/**
 * Node words JavaScript's syntax errors better; about TypeScript it only says that it can't.
 * @param {unknown} error
 */
function saidByNode(error) {
  const plain = error instanceof SyntaxError && !('code' in error)
  return plain ? { reason: error.message } : {}
}

/**
 * @param {any} error
 * @returns {Loaded}
 */
function failed(error) {
  return {
    ok: false,
    error,
    reason: reasonOf(error),
    at: syntaxLocation(error) ?? locationOf(error),
  }
}

/** @param {any} error */
function reasonOf(error) {
  try {
    const [first] = String(error.message ?? error).split('\n')
    return error.name === 'SyntaxError' || error.code
      ? first
      : `${error.name ?? 'thrown'}: ${first}`
  } catch {
    return 'it threw a value that cannot be shown'
  }
}

/**
 * Node puts `path:line` on the first line of the stack when it can't compile or link a file.
 * @param {any} error
 */
function syntaxLocation(error) {
  try {
    const [first] = String(error.stack).split('\n')
    return /^(?:file:\/\/)?((?:\/|[A-Za-z]:\\).*:\d+)$/.exec(first)?.[1] ?? null
  } catch {
    return null
  }
}
