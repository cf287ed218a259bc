/**
 * The exit status of every outcome: the one table, documented in docs/cli.md.
 *
 * A pipeline reads the status alone, so it says what kind of answer is needed: run it again (3), fix
 * what was typed or written (2), look at the database (4, 5).
 */

/** @import { MmkErrorCode } from '../../index.d.ts' */

export const EXIT = Object.freeze({
  ok: 0,
  /** A migration failed, the server can't be reached, or `status --check` found pending ones. */
  failed: 1,
  /** Usage, configuration, or files that can't be used: nothing was run. */
  usage: 2,
  /** Somebody else's run is in the way. */
  locked: 3,
  /** A state that a person must look at. */
  attention: 4,
  /** The lock was lost, or it is unknown what was written. */
  lost: 5,
  /** A bug in this package. */
  bug: 70,
  /** Ctrl-C at a prompt, or the run was cancelled; a signal has a status of its own. */
  interrupted: 130,
})

/** @type {Readonly<Record<MmkErrorCode, number> & Record<string, number>>} */
export const EXIT_BY_CODE = Object.freeze({
  MIGRATION_EXECUTION_FAILED: EXIT.failed,
  HOOK_FAILED: EXIT.failed,
  CONNECTION_FAILED: EXIT.failed,
  DATABASE_ERROR: EXIT.failed,
  LOCK_RELEASE_FAILED: EXIT.failed,

  CONFIG_INVALID: EXIT.usage,
  CONFIG_FILE_EXISTS: EXIT.usage,
  INVALID_ARGUMENT: EXIT.usage,
  MIGRATIONS_DIR_NOT_FOUND: EXIT.usage,
  MIGRATION_FILE_NOT_FOUND: EXIT.usage,
  MIGRATION_INVALID_NAME: EXIT.usage,
  MIGRATION_INVALID_EXPORT: EXIT.usage,
  MIGRATION_LOAD_FAILED: EXIT.usage,
  DEPENDENCY_MISSING: EXIT.usage,
  ALREADY_APPLIED: EXIT.usage,
  NOT_APPLIED: EXIT.usage,
  TRANSACTIONS_UNSUPPORTED: EXIT.usage,

  LOCK_ALREADY_HELD: EXIT.locked,
  LOCK_ORPHANS: EXIT.locked,

  CHECKSUM_MISMATCH: EXIT.attention,
  MIGRATION_OUT_OF_ORDER: EXIT.attention,
  MIGRATION_IRREVERSIBLE: EXIT.attention,
  MIGRATION_INTERRUPTED: EXIT.attention,
  FOREIGN_CHANGELOG: EXIT.attention,
  NAMESPACE_INDEX: EXIT.attention,
  IMPORT_TARGET_NOT_EMPTY: EXIT.attention,

  LOCK_LOST: EXIT.lost,
  CHANGELOG_CONFLICT: EXIT.lost,
  OUTCOME_UNKNOWN: EXIT.lost,

  RUN_CANCELLED: EXIT.interrupted,

  INTERNAL: EXIT.bug,
})

/**
 * @param {unknown} error what a command threw
 * @returns {number}
 */
export function exitStatus(error) {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (Object.hasOwn(EXIT_BY_CODE, code)) return EXIT_BY_CODE[code]
  // What the operating system refused (a directory that can't be written) is no bug of ours.
  return error instanceof Error && 'syscall' in error ? EXIT.failed : EXIT.bug
}
