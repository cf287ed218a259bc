/**
 * Turns the arguments of `up`, `down`, `redo` and `mark` into the core's request, or says what is
 * wrong with them before anything connects.
 */

import { MAX_MS } from './config/limits.js'
import { showValue } from './config/problems.js'
import { InvalidArgumentError, MigrationInvalidNameError } from './errors.js'
import { escapeText } from './text.js'

/** @import { LockPolicy, RunRequest } from './contract.d.ts' */
/** @import { DownOptions, DryRunOptions, LockOptions } from '../index.d.ts' */
/** @import { MarkOptions, MmkConfig, UpOptions } from '../index.d.ts' */

/** A lookup more often than this is load without a gain. */
const LEAST_POLL_MS = 10

/**
 * @param {string | undefined} file
 * @param {UpOptions} options
 * @param {Readonly<MmkConfig>} config
 * @returns {RunRequest}
 */
export function upRequest(file, options, config) {
  const { to, force = false, forceFresh = false, step = false } = options
  if (force && file === undefined) {
    throw new InvalidArgumentError('`force` needs the file to run again', { context: { force } })
  }
  refuseTogether({ filename: file, to })
  const target = { file: fileName(file), to: fileName(to) }
  const wishes = { step, force, forceFresh: Boolean(forceFresh) }
  return { command: 'up', ...target, ...wishes, ...lockPolicy(options, config) }
}

/**
 * @param {string | undefined} file
 * @param {DownOptions} options
 * @param {Readonly<MmkConfig>} config
 * @returns {RunRequest}
 */
export function downRequest(file, options, config) {
  const { to, batch, steps, force = false } = options
  refuseTogether({ filename: file, to, batch, steps })
  return {
    command: 'down',
    file: fileName(file),
    to: fileName(to),
    batch: wholeNumber('batch', batch, 1),
    steps: wholeNumber('steps', steps, 1),
    force,
    ...lockPolicy(options, config),
  }
}

/**
 * @param {'up' | 'down'} direction
 * @param {string | undefined} file
 * @param {DryRunOptions} options
 * @param {Readonly<MmkConfig>} config
 * @returns {RunRequest}
 */
export function dryRunRequest(direction, file, options, config) {
  if (direction === 'down') return downRequest(file, options, config)
  const { batch, steps, ...rest } = options
  if (direction === 'up' && batch === undefined && steps === undefined) {
    return upRequest(file, rest, config)
  }
  const message =
    direction === 'up'
      ? '`batch` and `steps` are for down'
      : `a dry run is of "up" or "down", not ${showValue(direction)}`
  throw new InvalidArgumentError(message, { context: { direction, batch, steps } })
}

/**
 * @param {string | undefined} file
 * @param {Readonly<MmkConfig>} config
 * @returns {RunRequest}
 */
export function redoRequest(file, config) {
  return { command: 'redo', file: fileName(file), ...lockPolicy({}, config) }
}

/**
 * @param {string} file
 * @param {'applied' | 'pending'} state
 * @param {MarkOptions} options
 * @param {Readonly<MmkConfig>} config
 * @returns {RunRequest}
 */
export function markRequest(file, state, { reason }, config) {
  const name = fileName(file)
  if (name === null) throw new InvalidArgumentError('`mark` needs a file', { context: { file } })
  if (state !== 'applied' && state !== 'pending') {
    throw new InvalidArgumentError(
      `\`mark\` takes "applied" or "pending", not ${showValue(state)}`,
      { context: { state } },
    )
  }
  if (reason !== undefined && (typeof reason !== 'string' || reason.trim() === '')) {
    throw new InvalidArgumentError(`\`reason\` must be a text, not ${showValue(reason)}`, {
      context: { reason },
    })
  }
  const why = reason?.trim() ?? null
  return { command: 'mark', file: name, state, reason: why, ...lockPolicy({}, config) }
}

/** @param {Record<string, unknown>} selections of which only one may be given */
function refuseTogether(selections) {
  const given = Object.entries(selections).filter(([, value]) => value != null)
  if (given.length < 2) return
  const names = given.map(([name]) => (name === 'filename' ? 'a file' : `\`${name}\``))
  throw new InvalidArgumentError(`${names.join(' and ')} exclude each other`, {
    context: Object.fromEntries(given),
  })
}

/**
 * @param {LockOptions} options
 * @param {Readonly<MmkConfig>} config
 * @returns {LockPolicy}
 */
function lockPolicy(options, config) {
  const { noLock = false, onLockHeld = config.onLockHeld, lockPollIntervalMs } = options
  if (onLockHeld !== 'throw' && onLockHeld !== 'wait') {
    throw new InvalidArgumentError(
      `\`onLockHeld\` must be "throw" or "wait", not ${showValue(onLockHeld)}`,
      { context: { onLockHeld } },
    )
  }
  const timeout = options.lockWaitTimeoutMs ?? config.lockWaitTimeoutMs
  return {
    noLock: Boolean(noLock),
    onLockHeld,
    lockWaitTimeoutMs: wholeNumber('lockWaitTimeoutMs', timeout, 0, MAX_MS),
    lockPollIntervalMs: wholeNumber(
      'lockPollIntervalMs',
      lockPollIntervalMs,
      LEAST_POLL_MS,
      MAX_MS,
    ),
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} least
 * @param {number} [most]
 */
function wholeNumber(name, value, least, most = Number.MAX_SAFE_INTEGER) {
  if (value === undefined || value === null) return null
  const whole = typeof value === 'number' && Number.isSafeInteger(value)
  if (whole && value >= least && value <= most) return value
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`
  throw new InvalidArgumentError(
    `\`${name}\` must be a whole number, ${range}, not ${showValue(value)}`,
    { context: { [name]: value } },
  )
}

/**
 * A bare name: nothing outside the migrations directory can be named.
 * @param {unknown} file
 */
function fileName(file) {
  if (file === undefined || file === null) return null
  const bare =
    typeof file === 'string' &&
    file !== '' &&
    file !== '.' &&
    file !== '..' &&
    !/[/\\\0]/.test(file)
  if (bare) return file
  const shown = typeof file === 'string' ? `"${escapeText(file)}"` : showValue(file)
  throw new MigrationInvalidNameError(`${shown} is not the name of a migration file`, {
    context: { name: file },
    hint: 'Give the bare file name, as `mmk status` shows it',
  })
}
