/**
 * What to do with a thrown value, which can be anything.
 *
 * Promises: the value itself is kept, by identity, under a number; describing it never throws and
 * never grows beyond a bound, even for proxies whose traps throw and getters that do.
 */
import { inspect } from 'node:util'
import { locationOf, peek } from './location.js'
import { redact, redactData } from './redact.js'

/** @import { HostError } from './contract.d.ts' */

/** Entries and messages store what is said here; a thrown novel helps nobody. */
const MAX_NAME = 100
const MAX_MESSAGE = 4000
/** Of an `AggregateError` without a message of its own, this many are told. */
const MAX_INNER = 3
/** Of a list that a thrown value carries: labels, errors within it. */
const MAX_LISTED = 10

/** @typedef {ReturnType<typeof createCauses>} Causes */

/** Keeps thrown values for as long as a run lasts. */
export function createCauses() {
  /** @type {unknown[]} */
  const values = []
  return {
    /**
     * @param {unknown} value
     * @returns {number} its `causeId`
     */
    keep: (value) => values.push(value) - 1,
    /** @param {number} id */
    get: (id) => values[id],
  }
}

/**
 * @param {string} text
 * @param {number} length
 */
function bounded(text, length) {
  const whole = text.toWellFormed()
  return whole.length <= length ? whole : `${whole.slice(0, length).toWellFormed()}…`
}

/** @param {unknown} value */
function nameOf(value) {
  if (value === null) return 'null'
  if (typeof value !== 'object' && typeof value !== 'function') return typeof value
  for (const name of [peek(value, 'name'), peek(peek(value, 'constructor'), 'name')]) {
    if (typeof name === 'string' && name !== '') return name
  }
  return 'object'
}

/** @param {unknown} value */
function messageOf(value) {
  if (typeof value === 'string') return value
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) {
    return String(value)
  }
  const message = peek(value, 'message')
  if (typeof message === 'string' && message !== '') return message
  const inner = peek(value, 'errors')
  if (Array.isArray(inner) && inner.length > 0) return innerMessages(inner)
  return inspected(value)
}

/** @param {unknown[]} errors */
function innerMessages(errors) {
  const told = errors.slice(0, MAX_INNER).map((error) => peek(error, 'message') ?? inspected(error))
  const more = errors.length > MAX_INNER ? [`and ${errors.length - MAX_INNER} more`] : []
  return [...told, ...more].map(String).join('; ')
}

/** @param {unknown} value */
function inspected(value) {
  try {
    const options = { depth: 2, maxArrayLength: 10, maxStringLength: 500, breakLength: Infinity }
    return inspect(value, { ...options, customInspect: false, getters: false })
  } catch {
    return 'a value that cannot be shown'
  }
}

/**
 * Facts that drivers attach, for whoever reads the event or the entry.
 * @param {unknown} value
 */
function contextOf(value) {
  /** @type {Record<string, unknown>} */
  const context = {}
  for (const key of ['code', 'codeName']) {
    const fact = peek(value, key)
    if (typeof fact === 'string' || typeof fact === 'number') context[key] = fact
  }
  const lists = {
    errorLabels: listed(value, 'errorLabels', (label) => bounded(String(label), MAX_NAME)),
    // Without the documents: what failed to be written may be anybody's data.
    writeErrors: listed(value, 'writeErrors', (failed) => ({
      index: numberOf(peek(failed, 'index')),
      code: numberOf(peek(failed, 'code')),
      message: bounded(String(peek(failed, 'errmsg')), MAX_MESSAGE),
    })),
    errors: listed(value, 'errors', (error) => ({
      name: bounded(nameOf(error), MAX_NAME),
      message: bounded(messageOf(error), MAX_MESSAGE),
    })),
  }
  for (const [key, list] of Object.entries(lists)) if (list !== null) context[key] = list
  const location = locationOf(value)
  if (location !== null) context.location = location
  return context
}

/**
 * @param {unknown} value
 * @param {string} key
 * @param {(item: unknown) => unknown} tell
 * @returns {unknown[] | null} `null`: there is no such list
 */
function listed(value, key, tell) {
  const items = peek(value, key)
  try {
    return Array.isArray(items) ? items.slice(0, MAX_LISTED).map(tell) : null
  } catch {
    return null
  }
}

/** @param {unknown} value */
function numberOf(value) {
  return typeof value === 'number' ? value : null
}

/**
 * A thrown value as the contract carries it; the value stays here, in `causes`.
 * @param {unknown} value
 * @param {Causes} causes
 * @returns {HostError}
 */
export function describeThrown(value, causes) {
  return {
    code: null,
    name: bounded(nameOf(value), MAX_NAME),
    message: bounded(redact(bounded(messageOf(value), MAX_MESSAGE)), MAX_MESSAGE),
    context: redactData(contextOf(value)),
    causeId: causes.keep(value),
  }
}

/**
 * An error of ours as the contract carries it.
 * @param {import('./errors.js').MmkError} error
 * @param {Causes} causes
 * @returns {HostError}
 */
export function describeOurs(error, causes) {
  const { code, name, message, context } = error
  return { code, name, message, context, causeId: causes.keep(error) }
}
