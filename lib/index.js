/**
 * The public API: what `index.d.ts` describes, and nothing else.
 */
export { defineConfig, defineMigration } from './define.js'
export {
  AlreadyAppliedError,
  ChangelogConflictError,
  ChecksumMismatchError,
  ConfigFileExistsError,
  ConfigInvalidError,
  ConnectionFailedError,
  DatabaseError,
  DependencyMissingError,
  ForeignChangelogError,
  HookFailedError,
  ImportTargetNotEmptyError,
  InterruptedMigrationError,
  InvalidArgumentError,
  IrreversibleMigrationError,
  LockAlreadyHeldError,
  LockLostError,
  LockOrphansError,
  LockReleaseFailedError,
  MigrationExecutionFailedError,
  MigrationFileNotFoundError,
  MigrationInvalidExportError,
  MigrationInvalidNameError,
  MigrationLoadFailedError,
  MigrationOutOfOrderError,
  MigrationsDirNotFoundError,
  MmkError,
  NamespaceIndexError,
  NotAppliedError,
  OutcomeUnknownError,
  RunCancelledError,
  TransactionsUnsupportedError,
} from './errors.js'
export { MigratorKit } from './kit.js'
export { pendingMigrations, runMigrations } from './run.js'
