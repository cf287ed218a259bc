/**
 * Every error that we throw, and how a failure of the core becomes one.
 *
 * Promises: `code` is stable, message, hint and context carry no secrets, `cause` is the identical
 * value that the user's code threw, and an error of ours that has crossed the core comes back as the
 * same object. It does not decide exit codes (`cli/exit.js`) nor lay out text (`messages.js`).
 */
import { busyLockText, executionFailureText, joinText } from './messages.js'
import { redact, redactData } from './redact.js'
import { lockInfo } from './shapes.js'

/** @import { Failure, RunResult } from './contract.d.ts' */
/** @import { ErrorDetails, MmkErrorCode } from '../index.d.ts' */
/** @import { Causes } from './thrown.js' */

export class MmkError extends Error {
  /**
   * @param {MmkErrorCode} code
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(code, message, details = {}) {
    super(redact(message), 'cause' in details ? { cause: details.cause } : undefined)
    this.name = new.target.name
    this.code = code
    this.context = redactData(details.context ?? {})
    this.hint = details.hint ? redact(details.hint) : null
    this.certainty = details.certainty ?? 'known'
    /** @type {import('../index.d.ts').MmkError[]} */
    this.suppressed = [...(details.suppressed ?? [])]
  }
}

/** @type {Map<string, new (message: string, details?: ErrorDetails) => MmkError>} */
const classes = new Map()

/**
 * @param {string} name
 * @param {MmkErrorCode} code
 */
function defineError(name, code) {
  const Coded = class extends MmkError {
    /**
     * @param {string} message
     * @param {ErrorDetails} [details]
     */
    constructor(message, details) {
      super(code, message, details)
    }
  }
  Object.defineProperty(Coded, 'name', { value: name })
  classes.set(code, Coded)
  return Coded
}

export const LockAlreadyHeldError = defineError('LockAlreadyHeldError', 'LOCK_ALREADY_HELD')
export const LockLostError = defineError('LockLostError', 'LOCK_LOST')
export const LockOrphansError = defineError('LockOrphansError', 'LOCK_ORPHANS')
export const LockReleaseFailedError = defineError('LockReleaseFailedError', 'LOCK_RELEASE_FAILED')
export const ChangelogConflictError = defineError('ChangelogConflictError', 'CHANGELOG_CONFLICT')
export const OutcomeUnknownError = defineError('OutcomeUnknownError', 'OUTCOME_UNKNOWN')
export const ChecksumMismatchError = defineError('ChecksumMismatchError', 'CHECKSUM_MISMATCH')
export const MigrationFileNotFoundError = defineError(
  'MigrationFileNotFoundError',
  'MIGRATION_FILE_NOT_FOUND',
)
export const MigrationsDirNotFoundError = defineError(
  'MigrationsDirNotFoundError',
  'MIGRATIONS_DIR_NOT_FOUND',
)
export const MigrationInvalidNameError = defineError(
  'MigrationInvalidNameError',
  'MIGRATION_INVALID_NAME',
)
export const MigrationInvalidExportError = defineError(
  'MigrationInvalidExportError',
  'MIGRATION_INVALID_EXPORT',
)
export const MigrationLoadFailedError = defineError(
  'MigrationLoadFailedError',
  'MIGRATION_LOAD_FAILED',
)
export const MigrationExecutionFailedError = defineError(
  'MigrationExecutionFailedError',
  'MIGRATION_EXECUTION_FAILED',
)
export const MigrationOutOfOrderError = defineError(
  'MigrationOutOfOrderError',
  'MIGRATION_OUT_OF_ORDER',
)
export const InterruptedMigrationError = defineError(
  'InterruptedMigrationError',
  'MIGRATION_INTERRUPTED',
)
export const IrreversibleMigrationError = defineError(
  'IrreversibleMigrationError',
  'MIGRATION_IRREVERSIBLE',
)
export const ConfigInvalidError = defineError('ConfigInvalidError', 'CONFIG_INVALID')
export const ConfigFileExistsError = defineError('ConfigFileExistsError', 'CONFIG_FILE_EXISTS')
export const InvalidArgumentError = defineError('InvalidArgumentError', 'INVALID_ARGUMENT')
export const ConnectionFailedError = defineError('ConnectionFailedError', 'CONNECTION_FAILED')
export const AlreadyAppliedError = defineError('AlreadyAppliedError', 'ALREADY_APPLIED')
export const NotAppliedError = defineError('NotAppliedError', 'NOT_APPLIED')
export const ForeignChangelogError = defineError('ForeignChangelogError', 'FOREIGN_CHANGELOG')
export const ImportTargetNotEmptyError = defineError(
  'ImportTargetNotEmptyError',
  'IMPORT_TARGET_NOT_EMPTY',
)
export const TransactionsUnsupportedError = defineError(
  'TransactionsUnsupportedError',
  'TRANSACTIONS_UNSUPPORTED',
)
export const DependencyMissingError = defineError('DependencyMissingError', 'DEPENDENCY_MISSING')

/**
 * The error for a failure that the core reported.
 * @param {Failure} failure
 * @param {Causes} causes where the host kept what was thrown
 * @param {RunResult[]} [results] what the run had done before it failed
 * @returns {MmkError}
 */
export function fromFailure(failure, causes, results = []) {
  const suppressed = failure.suppressed.map((later) => fromFailure(later, causes))
  const kept = failure.causeId === null ? undefined : causes.get(failure.causeId)
  if (isOurs(kept, failure)) {
    kept.suppressed.push(...suppressed)
    return kept
  }
  const { message, context } = describe(failure, results)
  const { hint, certainty } = failure
  const details = { context, hint, certainty, suppressed }
  const withCause = failure.causeId === null ? details : { ...details, cause: kept }
  const Coded = classes.get(failure.code)
  if (Coded) return new Coded(message, withCause)
  return new MmkError(/** @type {MmkErrorCode} */ (failure.code), message, withCause)
}

/**
 * Is a value that someone threw an error of ours? Anything can be thrown, even a proxy that throws
 * when it is looked at.
 * @param {unknown} value
 * @returns {value is MmkError}
 */
export function isMmkError(value) {
  try {
    return value instanceof MmkError
  } catch {
    return false
  }
}

/**
 * Did the host throw this very error, and the core only carry it?
 * @param {unknown} kept
 * @param {Failure} failure
 * @returns {kept is MmkError}
 */
function isOurs(kept, failure) {
  return isMmkError(kept) && kept.code === failure.code && kept.message === failure.message
}

/**
 * The text that users log, and the context in its public shape.
 * @param {Failure} failure
 * @param {RunResult[]} results
 */
function describe(failure, results) {
  const { code, message } = failure
  /** @type {Record<string, any>} */
  const context = { ...failure.context }
  if (typeof context.cause?.message === 'string') context.cause = context.cause.message
  if (code === 'LOCK_ALREADY_HELD') {
    context.holder = context.holder ? lockInfo(context.holder) : null
    return { message: joinText(busyLockText(context.holder)), context }
  }
  if (code === 'MIGRATION_EXECUTION_FAILED') {
    const { location } = context.details ?? {}
    if (location !== undefined) context.location = location
    const applied = results.filter((result) => result.status !== 'skipped')
    return { message: executionMessage(message, context, applied), context }
  }
  return { message, context }
}

/**
 * @param {string} message
 * @param {Record<string, any>} facts
 * @param {RunResult[]} done
 */
function executionMessage(message, facts, done) {
  return joinText(
    executionFailureText({
      name: String(facts.name ?? ''),
      direction: facts.direction === 'down' ? 'down' : 'up',
      reason: String(facts.cause ?? message),
      location: typeof facts.location === 'string' ? facts.location : null,
      transaction: typeof facts.transaction === 'boolean' ? facts.transaction : null,
      done: done.map((result) => result.file),
      notStarted: Array.isArray(facts.notStarted) ? facts.notStarted : [],
    }),
  )
}
