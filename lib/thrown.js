/**
 * What to do with a thrown value, which can be anything.
 *
 * Promises: the value itself is kept, by identity, under a number; describing it never throws and
 * never grows beyond a bound, even for proxies whose traps throw and getters that do.
 */
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { redact, redactData } from './redact.js'

/** @import { HostError } from './contract.d.ts' */

/** Entries and messages store what is said here; a thrown novel helps nobody. */
const MAX_NAME = 100
const MAX_MESSAGE = 4000
/** Of an `AggregateError` without a message of its own, this many are told. */
const MAX_INNER = 3
/** Of a stack, this much is searched for the user's file. */
const MAX_STACK = 20_000

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
 * A property of something that may not want to be looked at.
 * @param {any} value
 * @param {string} key
 * @returns {any}
 */
function peek(value, key) {
  try {
    return value[key]
  } catch {
    return undefined
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
 * Where the user's code threw: the first frame that is neither Node's, nor a package's, nor ours.
 * @param {unknown} value
 * @returns {string | null} `path:line:column`
 */
export function locationOf(value) {
  const stack = peek(value, 'stack')
  if (typeof stack !== 'string') return null
  for (const line of stack.slice(0, MAX_STACK).split('\n')) {
    const address = /\((.*)\)$/.exec(line)?.[1] ?? line.replace(/^\s+at (?:async )?/, '')
    const frame = /^((?:file:\/\/\/?|\/|[A-Za-z]:\\).*):(\d+):(\d+)$/.exec(address)
    if (frame === null || /[\\/]node_modules[\\/]/.test(frame[1])) continue
    const path = toPath(frame[1])
    if (path !== null && !path.startsWith(OURS)) return `${path}:${frame[2]}:${frame[3]}`
  }
  return null
}

/** @param {string} address */
function toPath(address) {
  try {
    return address.startsWith('file://') ? fileURLToPath(address.replace(/\?.*$/, '')) : address
  } catch {
    return null
  }
}

const OURS = fileURLToPath(new URL('.', import.meta.url))

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
  const labels = peek(value, 'errorLabels')
  if (Array.isArray(labels)) context.errorLabels = labels.slice(0, 10).map(String)
  const location = locationOf(value)
  if (location !== null) context.location = location
  return context
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
