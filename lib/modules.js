/**
 * Loads one migration file and checks what it exports, before anything runs.
 *
 * Promises: a migration with a function `up`, or an error of ours that names the file: exports by
 * name or in a default object, wrapped once or twice by a compiler, are the same.
 */
import { access, readdir, readFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import {
  MigrationFileNotFoundError,
  MigrationInvalidExportError,
  MigrationLoadFailedError,
  MmkError,
} from './errors.js'
import { importFile } from './import-file.js'
import { escapeText } from './text.js'

/** @import { MigrationDefinition } from '../index.d.ts' */

/** A body with this many parameters waits for a callback, which nobody would call. */
const CALLBACK_PARAMETERS = 3

/**
 * The path of a file whose name the core knows in normal form C. Some systems store names decomposed.
 * @param {string} directory absolute
 * @param {string} name
 * @returns {Promise<string>}
 */
export async function locateFile(directory, name) {
  const path = join(directory, name)
  if (await exists(path)) return path
  const names = await readdir(directory).catch(() => [])
  return join(directory, names.find((stored) => stored.normalize('NFC') === name) ?? name)
}

/** @param {string} path */
function exists(path) {
  return access(path).then(
    () => true,
    () => false,
  )
}

/**
 * @param {string} path absolute
 * @param {{ fresh?: boolean }} [options] `fresh`: read it anew, whatever was loaded before
 * @returns {Promise<MigrationDefinition>}
 */
export async function loadMigration(path, options) {
  const loaded = await importFile(path, options)
  if (!loaded.ok) throw await loadFailure(path, loaded)
  try {
    return checked(path, loaded.exports)
  } catch (error) {
    if (error instanceof MmkError) throw error
    throw await loadFailure(path, { error, reason: 'its exports cannot be read', at: null })
  }
}

/**
 * @param {string} path
 * @param {{ error: unknown, reason: string, at: string | null }} loaded
 */
async function loadFailure(path, { error, reason, at }) {
  const name = escapeText(basename(path))
  if (!(await exists(path))) {
    return new MigrationFileNotFoundError(`Migration file not found: ${name}`, {
      context: { filepath: path },
    })
  }
  if (await isUtf16(path)) {
    return new MigrationLoadFailedError(`Could not load ${name}: it is UTF-16 text`, {
      context: { filepath: path, cause: reason, encoding: 'UTF-16' },
      hint: 'Save it as UTF-8 (older PowerShell writes UTF-16 with > and Out-File)',
      cause: error,
    })
  }
  const place = at === null ? '' : ` (${escapeText(shortened(at))})`
  return new MigrationLoadFailedError(`Could not load ${name}: ${reason}${place}`, {
    context: { filepath: path, cause: reason, ...(at === null ? {} : { location: at }) },
    hint: hintFor(path, reason),
    cause: error,
  })
}

/**
 * By its byte order mark: Node reads such a file as UTF-8, and complains of a stray character.
 * @param {string} path
 */
async function isUtf16(path) {
  const [first, second] = await readFile(path).catch(() => Buffer.alloc(0))
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
}

/**
 * @param {string} path
 * @param {string} reason
 */
function hintFor(path, reason) {
  return /\b(?:require|module|exports) is not defined/.test(reason)
    ? `${escapeText(basename(path))} is CommonJS in a package of ES modules: rename it to .cjs`
    : null
}

/** @param {string} path */
function shortened(path) {
  const short = relative(process.cwd(), path)
  return short.startsWith('..') ? path : short
}

/**
 * @param {string} path
 * @param {any} exports
 * @returns {MigrationDefinition}
 */
function checked(path, exports) {
  const migration = unwrapped(exports)
  const problems = problemsOf(migration)
  if (problems.length === 0) {
    const { up, down, description, useTransaction, onInterrupted } = migration
    return {
      up: up.bind(migration),
      ...(down == null ? {} : { down: down.bind(migration) }),
      description,
      useTransaction,
      onInterrupted,
    }
  }
  const names = Object.keys(migration).filter((name) => name !== 'module.exports')
  throw new MigrationInvalidExportError(
    `${escapeText(basename(path))} is not a usable migration: ${problems.join('; ')}`,
    {
      context: {
        filepath: path,
        missing: typeof migration.up === 'function' ? [] : ['up'],
        exports: names,
        problems,
      },
      hint: 'A migration exports an async function `up` (and `down`), by name or as a default object',
    },
  )
}

/**
 * The object that has the `up`, or the innermost one.
 * @param {any} exports
 * @returns {any}
 */
function unwrapped(exports) {
  const candidates = [exports, exports?.default, exports?.default?.default]
  const objects = candidates.filter((each) => each !== null && typeof each === 'object')
  return objects.find((each) => each.up !== undefined) ?? objects.at(-1) ?? {}
}

/**
 * @param {any} migration
 * @returns {string[]}
 */
function problemsOf({ up, down, description, useTransaction, onInterrupted }) {
  return [
    ...(up === undefined ? ['it exports no function `up`'] : bodyProblems('up', up)),
    ...(down == null ? [] : bodyProblems('down', down)),
    ...typeProblem('description', description, 'string'),
    ...typeProblem('useTransaction', useTransaction, 'boolean'),
    ...(onInterrupted === undefined || ['retry', 'stop'].includes(onInterrupted)
      ? []
      : ['`onInterrupted` must be "retry" or "stop"']),
  ]
}

/**
 * @param {'up' | 'down'} name
 * @param {unknown} body
 */
function bodyProblems(name, body) {
  if (typeof body !== 'function') return [`\`${name}\` must be a function, not ${typeof body}`]
  if (body.length < CALLBACK_PARAMETERS) return []
  return [
    `\`${name}\` takes ${body.length} parameters, as if to call back when done: ` +
      'make it async, or return a promise that resolves when it is done',
  ]
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {string} type
 */
function typeProblem(name, value, type) {
  const fine = value === undefined || typeof value === type
  return fine
    ? []
    : [`\`${name}\` must be a ${type}, not ${value === null ? 'null' : typeof value}`]
}
