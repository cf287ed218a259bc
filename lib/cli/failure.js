/**
 * What a failure looks like, for people and for programs. Pure: errors in, text or data out, with
 * secrets removed and control characters escaped.
 */

import { busyLockText, joinText } from '../messages.js'
import { redact } from '../redact.js'
import { escapeLines, listNames } from '../text.js'
import { EXIT, EXIT_BY_CODE, exitStatus } from './exit.js'

/** A chain of causes longer than this is a loop, or a novel. */
const MAX_CAUSES = 6

/**
 * @typedef {Error & {
 *   code?: string
 *   context?: Record<string, unknown>
 *   hint?: string | null
 *   docsUrl?: string
 *   suppressed?: Error[]
 * }} AnyError
 */

/**
 * @param {unknown} thrown
 * @returns {AnyError}
 */
function asError(thrown) {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** @param {string} text */
function clean(text) {
  return escapeLines(redact(text))
}

/**
 * `✖ CODE: message`, the facts below it, what to type next.
 * @param {unknown} thrown
 * @param {{ utc?: boolean, verbose?: boolean }} [options]
 * @returns {string}
 */
export function failureText(thrown, { utc = false, verbose = false } = {}) {
  const error = asError(thrown)
  const message = clean(messageOf(error, utc))
  const named = error.code === undefined || message.startsWith(`${error.code}: `)
  const lines = [`✖ ${named ? '' : `${error.code}: `}${message}`]
  lines.push(...listLines(error))
  if (error.hint && !lines[0].includes('\n  Try: ')) lines.push(`  Hint: ${clean(error.hint)}`)
  for (const later of error.suppressed ?? []) {
    const [first] = clean(asError(later).message).split('\n')
    lines.push(`  Also: ${first}`)
  }
  lines.push(...docsLines(error))
  const isBug = exitStatus(thrown) === EXIT.bug
  if (isBug) lines.push('  This is a bug in mongo-migrate-kit: please report it with what follows')
  if (verbose || isBug) lines.push(...stackLines(error))
  return lines.join('\n')
}

/**
 * Where to read on, for failures that are about the state of a database. What is wrong with a command
 * line or a configuration says itself how to set it right, and so does a held lock.
 * @param {AnyError} error
 */
function docsLines({ code = '', docsUrl }) {
  const status = EXIT_BY_CODE[code]
  const isAboutData =
    status !== EXIT.usage && status !== EXIT.interrupted && code !== 'LOCK_ALREADY_HELD'
  return docsUrl && isAboutData ? [`  More: ${docsUrl}`] : []
}

/** @param {AnyError} error @param {boolean} utc */
function messageOf(error, utc) {
  const { holder, waitedMs } = error.context ?? {}
  const inUtc = utc && error.code === 'LOCK_ALREADY_HELD' && holder !== undefined
  if (!inUtc) return error.message
  return joinText(busyLockText(holder ?? null, { utc, waitedMs: Number(waitedMs ?? 0) }))
}

/** Lists that a message has no room for: by code, the key in the context and what to call it. */
const LISTS = new Map([
  ['MIGRATION_FILE_NOT_FOUND', ['available', 'There is']],
  ['MIGRATION_INVALID_EXPORT', ['exports', 'It exports']],
  ['NOT_APPLIED', ['applied', 'Applied are']],
])

/**
 * @param {AnyError} error
 * @returns {string[]}
 */
function listLines({ code = '', context }) {
  const [key, label] = LISTS.get(code) ?? []
  const names = key === undefined ? null : context?.[key]
  const several = Array.isArray(context?.problems) && context.problems.length > 1
  if (!Array.isArray(names) || several) return []
  return [`  ${label}: ${names.length === 0 ? 'nothing' : clean(listNames(names))}`]
}

/**
 * The stacks of the error and of what caused it, for `--verbose`.
 * @param {AnyError} error
 */
function stackLines(error) {
  /** @type {string[]} */
  const lines = []
  /** @type {unknown} */
  let current = error
  for (let depth = 0; current instanceof Error && depth < MAX_CAUSES; depth += 1) {
    const stack = clean(String(current.stack ?? current.message))
    lines.push(...`${depth === 0 ? '' : 'Caused by: '}${stack}`.split('\n').map((l) => `    ${l}`))
    current = current.cause
  }
  return lines
}

/**
 * The `--json` document of a failure, in 1.x's shape with `hint` added.
 * @param {unknown} thrown
 */
export function failureDocument(thrown) {
  const error = asError(thrown)
  // Numbers of a run have a place of their own, in version 2.
  const { metrics: _, ...details } = error.context ?? {}
  return {
    error: {
      code: error.code ?? null,
      message: redact(error.message),
      details,
      hint: error.hint ? redact(error.hint) : null,
    },
  }
}
