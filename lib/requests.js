/**
 * Turns the arguments of `up` and `down` into the core's request, or says what is wrong with them
 * before anything connects.
 */

import { showValue } from './config/problems.js'
import { InvalidArgumentError, MigrationInvalidNameError } from './errors.js'
import { escapeText } from './text.js'

/** @import { LockPolicy, RunRequest } from './contract.d.ts' */
/** @import { DownOptions, LockOptions, MmkConfig, UpOptions } from '../index.d.ts' */

/** A lookup more often than this is load without a gain. */
const LEAST_POLL_MS = 10

/**
 * @param {string | undefined} file
 * @param {UpOptions} options
 * @param {Readonly<MmkConfig>} config
 * @returns {RunRequest}
 */
export function upRequest(file, options, config) {
  const { force = false, step = false } = options
  if (force && file === undefined) {
    throw new InvalidArgumentError('`force` needs the file to run again', { context: { force } })
  }
  return { command: 'up', file: fileName(file), step, force, ...lockPolicy(options, config) }
}

/**
 * @param {string | undefined} file
 * @param {DownOptions} options
 * @param {Readonly<MmkConfig>} config
 * @returns {RunRequest}
 */
export function downRequest(file, options, config) {
  const { batch, steps, force = false } = options
  const given = Object.entries({ filename: file, batch, steps }).filter(
    ([, value]) => value != null,
  )
  if (given.length > 1) {
    const names = given.map(([name]) => (name === 'filename' ? 'a file' : `\`${name}\``))
    throw new InvalidArgumentError(`${names.join(' and ')} exclude each other`, {
      context: Object.fromEntries(given),
    })
  }
  return {
    command: 'down',
    file: fileName(file),
    batch: wholeNumber('batch', batch, 1),
    steps: wholeNumber('steps', steps, 1),
    force,
    ...lockPolicy(options, config),
  }
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
    lockWaitTimeoutMs: wholeNumber('lockWaitTimeoutMs', timeout, 0),
    lockPollIntervalMs: wholeNumber('lockPollIntervalMs', lockPollIntervalMs, LEAST_POLL_MS),
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} least
 */
function wholeNumber(name, value, least) {
  if (value === undefined || value === null) return null
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value
  throw new InvalidArgumentError(
    `\`${name}\` must be a whole number, ${least} or more, not ${showValue(value)}`,
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
