/**
 * The same contract for CommonJS: `require('mongo-migrate-kit')` gives the exports of the ES module.
 * A test keeps the names here and in `index.d.ts` the same.
 */
import type * as api from './index.js' with { 'resolution-mode': 'import' }

export declare const runMigrations: typeof api.runMigrations
export declare const pendingMigrations: typeof api.pendingMigrations
export declare const defineMigration: typeof api.defineMigration
export declare const defineConfig: typeof api.defineConfig
export declare const MigratorKit: typeof api.MigratorKit
export declare const MmkError: typeof api.MmkError
export declare const LockAlreadyHeldError: typeof api.LockAlreadyHeldError
export declare const LockLostError: typeof api.LockLostError
export declare const LockOrphansError: typeof api.LockOrphansError
export declare const RunCancelledError: typeof api.RunCancelledError
export declare const LockReleaseFailedError: typeof api.LockReleaseFailedError
export declare const ChangelogConflictError: typeof api.ChangelogConflictError
export declare const OutcomeUnknownError: typeof api.OutcomeUnknownError
export declare const ChecksumMismatchError: typeof api.ChecksumMismatchError
export declare const MigrationFileNotFoundError: typeof api.MigrationFileNotFoundError
export declare const MigrationsDirNotFoundError: typeof api.MigrationsDirNotFoundError
export declare const MigrationInvalidNameError: typeof api.MigrationInvalidNameError
export declare const MigrationInvalidExportError: typeof api.MigrationInvalidExportError
export declare const MigrationLoadFailedError: typeof api.MigrationLoadFailedError
export declare const MigrationExecutionFailedError: typeof api.MigrationExecutionFailedError
export declare const InterruptedMigrationError: typeof api.InterruptedMigrationError
export declare const MigrationOutOfOrderError: typeof api.MigrationOutOfOrderError
export declare const IrreversibleMigrationError: typeof api.IrreversibleMigrationError
export declare const ConfigInvalidError: typeof api.ConfigInvalidError
export declare const ConfigFileExistsError: typeof api.ConfigFileExistsError
export declare const InvalidArgumentError: typeof api.InvalidArgumentError
export declare const ConnectionFailedError: typeof api.ConnectionFailedError
export declare const DatabaseError: typeof api.DatabaseError
export declare const HookFailedError: typeof api.HookFailedError
export declare const AlreadyAppliedError: typeof api.AlreadyAppliedError
export declare const NotAppliedError: typeof api.NotAppliedError
export declare const ForeignChangelogError: typeof api.ForeignChangelogError
export declare const NamespaceIndexError: typeof api.NamespaceIndexError
export declare const ImportTargetNotEmptyError: typeof api.ImportTargetNotEmptyError
export declare const TransactionsUnsupportedError: typeof api.TransactionsUnsupportedError
export declare const DependencyMissingError: typeof api.DependencyMissingError

export type MigratorKit = api.MigratorKit
export type MmkError = api.MmkError
export type LockAlreadyHeldError = api.LockAlreadyHeldError
export type LockLostError = api.LockLostError
export type LockOrphansError = api.LockOrphansError
export type RunCancelledError = api.RunCancelledError
export type LockReleaseFailedError = api.LockReleaseFailedError
export type ChangelogConflictError = api.ChangelogConflictError
export type OutcomeUnknownError = api.OutcomeUnknownError
export type ChecksumMismatchError = api.ChecksumMismatchError
export type MigrationFileNotFoundError = api.MigrationFileNotFoundError
export type MigrationsDirNotFoundError = api.MigrationsDirNotFoundError
export type MigrationInvalidNameError = api.MigrationInvalidNameError
export type MigrationInvalidExportError = api.MigrationInvalidExportError
export type MigrationLoadFailedError = api.MigrationLoadFailedError
export type MigrationExecutionFailedError = api.MigrationExecutionFailedError
export type InterruptedMigrationError = api.InterruptedMigrationError
export type MigrationOutOfOrderError = api.MigrationOutOfOrderError
export type IrreversibleMigrationError = api.IrreversibleMigrationError
export type ConfigInvalidError = api.ConfigInvalidError
export type ConfigFileExistsError = api.ConfigFileExistsError
export type InvalidArgumentError = api.InvalidArgumentError
export type ConnectionFailedError = api.ConnectionFailedError
export type DatabaseError = api.DatabaseError
export type HookFailedError = api.HookFailedError
export type AlreadyAppliedError = api.AlreadyAppliedError
export type NotAppliedError = api.NotAppliedError
export type ForeignChangelogError = api.ForeignChangelogError
export type NamespaceIndexError = api.NamespaceIndexError
export type ImportTargetNotEmptyError = api.ImportTargetNotEmptyError
export type TransactionsUnsupportedError = api.TransactionsUnsupportedError
export type DependencyMissingError = api.DependencyMissingError
export type MigrationContext = api.MigrationContext
export type HookContext = api.HookContext
export type MigrationBody = api.MigrationBody
export type MigrationDefinition = api.MigrationDefinition
export type MigrationModule = api.MigrationModule
export type MigrationExtension = api.MigrationExtension
export type MmkConfig = api.MmkConfig
export type MmkConfigInput = api.MmkConfigInput
export type MigrationHooks = api.MigrationHooks
export type MmkLogger = api.MmkLogger
export type ProgressReporter = api.ProgressReporter
export type OnLockHeld = api.OnLockHeld
export type MigratorKitOptions = api.MigratorKitOptions
export type LockOptions = api.LockOptions
export type RunMigrationsOptions = api.RunMigrationsOptions
export type RunMigrationsInput = api.RunMigrationsInput
export type PendingMigrationsInput = api.PendingMigrationsInput
export type UpOptions = api.UpOptions
export type DownOptions = api.DownOptions
export type DryRunOptions = api.DryRunOptions
export type MarkOptions = api.MarkOptions
export type ImportOptions = api.ImportOptions
export type StatusOptions = api.StatusOptions
export type ForceUnlockOptions = api.ForceUnlockOptions
export type CreateOptions = api.CreateOptions
export type ConfigFormat = api.ConfigFormat
export type InitOptions = api.InitOptions
export type MigrationSummary = api.MigrationSummary
export type RunMetrics = api.RunMetrics
export type RunResultStatus = api.RunResultStatus
export type RunResult = api.RunResult
export type EntryState = api.EntryState
export type StatusRow = api.StatusRow
export type LockInfo = api.LockInfo
export type MigrationRecord = api.MigrationRecord
export type MigrationStatus = api.MigrationStatus
export type MigrationOrigin = api.MigrationOrigin
export type ImportTool = api.ImportTool
export type ImportChecksumSource = api.ImportChecksumSource
export type ImportRow = api.ImportRow
export type ImportRejection = api.ImportRejection
export type ImportResult = api.ImportResult
export type MigrateMongoDoc = api.MigrateMongoDoc
export type LockHolder = api.LockHolder
export type EventError = api.EventError
export type ClaimState = api.ClaimState
export type MmkEvent = api.MmkEvent
export type MmkErrorCode = api.MmkErrorCode
export type ErrorDetails = api.ErrorDetails
export type ConfigIssue = api.ConfigIssue
