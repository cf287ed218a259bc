/**
 * Every error that we throw: one class for each code.
 *
 * Promises: `code` is stable; message, hint and context carry no secrets. It does not decide exit
 * codes (`cli/exit.js`), nor what a failure of the core becomes (`failure.js`).
 */
import { redact, redactData } from './redact.js'

/** @import { ErrorDetails, MmkErrorCode } from '../index.d.ts' */

/**
 * Where errors are explained: in the package itself, so that it can be read in a container without a
 * network, in the version that runs. From the folder of the app that has us installed.
 */
export const DOCS = 'node_modules/mongo-migrate-kit/docs/errors.md#'

/** @param {string} code */
export function docsUrl(code) {
  return DOCS + code.toLowerCase()
}

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
    this.docsUrl = docsUrl(code)
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
export const RunCancelledError = defineError('RunCancelledError', 'RUN_CANCELLED')
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
export const DatabaseError = defineError('DatabaseError', 'DATABASE_ERROR')
export const HookFailedError = defineError('HookFailedError', 'HOOK_FAILED')
export const AlreadyAppliedError = defineError('AlreadyAppliedError', 'ALREADY_APPLIED')
export const NotAppliedError = defineError('NotAppliedError', 'NOT_APPLIED')
export const ForeignChangelogError = defineError('ForeignChangelogError', 'FOREIGN_CHANGELOG')
export const NamespaceIndexError = defineError('NamespaceIndexError', 'NAMESPACE_INDEX')
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
 * The error of a code; one without a class of its own is still an `MmkError`.
 * @param {string} code
 * @param {string} message
 * @param {ErrorDetails} details
 * @returns {MmkError}
 */
export function errorOf(code, message, details) {
  const Coded = classes.get(code)
  if (Coded) return new Coded(message, details)
  return new MmkError(/** @type {MmkErrorCode} */ (code), message, details)
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
