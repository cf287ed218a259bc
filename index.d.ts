/**
 * The public contract of mongo-migrate-kit.
 *
 * Durations are whole milliseconds unless a name says otherwise, instants are `Date`s on the clock of
 * the database server, an absent value is `null` in what we return and may be left out in what you
 * pass. Every promise that fails rejects with an {@link MmkError}.
 */
import type { ClientSession, Db, MongoClient, MongoClientOptions } from 'mongodb'

// ---------------------------------------------------------------------------------- entry points

/**
 * Applies every pending migration and resolves when the database is up to date: the one call for an
 * app's start. It opens its own connections and has closed them when it settles, either way.
 *
 * With nothing pending it takes one read and no lock, whoever holds it. Without arguments it reads
 * `mmk.config.*` and the `MMK_*` environment, as the CLI does.
 *
 * @throws {LockAlreadyHeldError} another run holds the lock (`onLockHeld: 'throw'`), or the wait ended
 * @throws {LockLostError} the lock was lost on the way: no further migration was started or recorded
 *   (with `onLockLost: 'warn'`: something could not be recorded)
 * @throws {MigrationExecutionFailedError} a body threw; `cause` is the very value that it threw
 * @throws {ConfigInvalidError} the configuration has problems, all listed in `context.issues`
 * @throws {ConnectionFailedError} the server can't be reached
 * @throws {ChangelogConflictError} another run has moved an entry that this one was about to write
 * @throws {OutcomeUnknownError} it can't be told whether the last write was done
 * @throws {MmkError} for the rest, branch on `code`; docs/errors.md has all of them
 */
export function runMigrations(options?: RunMigrationsInput): Promise<MigrationSummary>
/** The two-argument form of 1.x. */
export function runMigrations(
  config: Partial<MmkConfig>,
  options: RunMigrationsOptions,
): Promise<MigrationSummary>

/**
 * What `runMigrations` would apply, in its order. Reads only: works for a read-only user, creates
 * nothing, takes no lock.
 *
 * @throws {ConfigInvalidError} the configuration has problems, all listed in `context.issues`
 * @throws {ConnectionFailedError} the server can't be reached
 */
export function pendingMigrations(options?: PendingMigrationsInput): Promise<StatusRow[]>
/** The two-argument form of 1.x. */
export function pendingMigrations(
  config: Partial<MmkConfig>,
  options: MigratorKitOptions,
): Promise<StatusRow[]>

/** Returns its argument: a migration written as one object, checked and completed by your editor. */
export function defineMigration<T extends MigrationDefinition>(migration: T): T

/** Returns its argument: a configuration, or the function that makes one, checked by your editor. */
export function defineConfig<T extends MmkConfigInput>(config: T): T

/**
 * The commands of the CLI as methods. Connects by itself on first use; call `disconnect` when done,
 * or the process stays alive.
 */
export class MigratorKit {
  /**
   * @param config wins over the environment and the configuration file, key by key
   */
  constructor(config?: Partial<MmkConfig>, options?: MigratorKitOptions)

  /** The configuration file that was read, once there is one. Absolute path. */
  readonly configFile: string | null
  /** The configured namespace, once the configuration was read. `null` is the default one. */
  readonly namespace: string | null

  /** Resolves the configuration and connects. Needed only to learn early whether both work. */
  connect(): Promise<void>
  /** Closes what this kit opened. Never the client that you brought. Safe to call twice. */
  disconnect(): Promise<void>

  /** Applies all pending migrations, or the one named. */
  up(file?: string, options?: UpOptions): Promise<RunResult[]>
  /** Reverts the last batch, or what the arguments name, newest first. */
  down(file?: string, options?: DownOptions): Promise<RunResult[]>
  /**
   * Reverts one migration, the latest if none is named, and applies it again, under one lock and by
   * the file as it is now. What the file imports may come from the module cache.
   */
  redo(file?: string): Promise<RunResult[]>
  /**
   * What `up` or `down` would do, in the order in which it would be done; rejects where it would
   * refuse. Loads and checks the files, takes no lock, writes nothing.
   */
  dryRun(direction: 'up' | 'down', file?: string, options?: DryRunOptions): Promise<StatusRow[]>
  /**
   * Changes the entry of one migration by hand, under the lock; no body runs. `'applied'` says that
   * it is done: an entry is made if there is none, and the file as it is now is accepted.
   * `'pending'` says that it is not done, or is undone.
   */
  mark(file: string, state: 'applied' | 'pending', options?: MarkOptions): Promise<RunResult>

  /**
   * Takes over the history of another tool. Entries that are there already are left alone, so it can
   * be repeated; the source is only read.
   */
  import(options?: ImportOptions): Promise<ImportResult>

  /** One row for each file and each entry, in file order. Reads only. */
  status(options?: StatusOptions): Promise<StatusRow[]>
  /** The rows of `status` that are pending or applied. Reads only. */
  list(filter?: 'all' | 'pending' | 'applied'): Promise<StatusRow[]>

  /** Who holds the lock now, or `null`. A lock whose lease has run out is still shown. */
  lockInfo(): Promise<LockInfo | null>
  /**
   * Removes the lock, and returns the holder that lost it: `null` when there was none, or when the
   * lock now is not the one that `options.owner` names. A holder that is alive stops.
   */
  forceUnlock(options?: ForceUnlockOptions): Promise<LockInfo | null>

  /** Writes a new migration file. Never overwrites one. @returns its absolute path */
  create(name: string, options?: CreateOptions): Promise<string>
  /** Writes a configuration file into the working directory. @returns its absolute path */
  init(options?: InitOptions): Promise<string>
}

// ------------------------------------------------------------------------------- migration files

/**
 * What a body gets. The object is ALSO usable as the `Db` (`ctx.collection('users')`), and bodies get
 * the client as their second argument, so files written for migrate-mongo run unchanged.
 */
export interface MigrationContext {
  db: Db
  client: MongoClient
  /** Present when the migration runs in a transaction: pass it to every operation. */
  session?: ClientSession
  /** Your Mongoose instance, if the configuration has one. Untyped: mongoose needn't be installed. */
  // biome-ignore lint/suspicious/noExplicitAny: the type would force mongoose on everyone
  mongoose?: any
  /**
   * Aborts when the lock is lost (unless `onLockLost` is `'warn'`) or the run is cancelled;
   * `signal.reason` says which. A client that we made is closed with a lost lock; a body that is only
   * told to end may still finish, within 5 s. Long loops should call `signal.throwIfAborted()`.
   */
  signal: AbortSignal
  /** Says one line through the configured logger. */
  log(message: string): void
  /** The file name. */
  name: string
  direction: 'up' | 'down'
  /**
   * A number that rises with every grant of the lock: what it is stored with can tell an older run
   * from a newer one. `null` without a lock.
   */
  fencingToken: number | null
  /**
   * Makes a transaction that you opened yourself fail if a later run has begun. Call it as the last
   * thing before the commit: until then it keeps nobody waiting. Does nothing without a lock.
   *
   * @throws {LockLostError} a later run has begun
   * @throws {InvalidArgumentError} the session has no open transaction
   */
  fence(session: ClientSession): Promise<void>
}

/** What a hook gets: the context without what belongs to a single body. */
export type HookContext = Omit<
  MigrationContext,
  'session' | 'name' | 'direction' | 'fencingToken' | 'fence'
>

/** `up` or `down` of a migration. What it returns is awaited and ignored. */
export type MigrationBody = (context: MigrationContext & Db, client: MongoClient) => unknown

/** What a migration file exports, by name or as its default export. */
export interface MigrationDefinition {
  up: MigrationBody
  /** Left out when the migration can't be undone. */
  down?: MigrationBody
  /** What it is for, in a sentence: stored in the entry, and in the rows of `status`. */
  description?: string
  /** Overrides the configuration. Default: the configuration's `useTransaction`. */
  useTransaction?: boolean
  /** What the next run does after this one failed or was interrupted. Overrides the configuration. */
  onInterrupted?: 'retry' | 'stop'
}

/** A loaded migration, as 1.x names it. */
export interface MigrationModule extends MigrationDefinition {
  down: MigrationBody
}

export type MigrationExtension = 'ts' | 'js'

// ---------------------------------------------------------------------------------- configuration

/** Every key may come from the argument, the environment (`MMK_*`), the file or the default. */
export interface MmkConfig {
  /** `mongodb://` or `mongodb+srv://`. `MMK_URI`. */
  uri: string
  /** Default: the database in the URI's path. `MMK_DB`. */
  dbName: string
  /** Relative to the working directory. Default `'./migrations'`. `MMK_MIGRATIONS_DIR`. */
  migrationsDir: string
  /** Default `'_mmk_migrations'`. `MMK_COLLECTION`. */
  migrationsCollection: string
  /**
   * Default `'_mmk_locks'`. Never the same as `migrationsCollection`. Keep it: under another name a repo stops taking turns with the rest, and is
   * warned of it at every run. `MMK_LOCK_COLLECTION`.
   */
  lockCollection: string
  /**
   * Seconds until a crashed run's lock frees itself: an integer from 1 to 86 400, a day. Default 60.
   * `MMK_LOCK_TTL`.
   */
  lockTTLSeconds: number
  /** Which repo this is, on a database that several share. Default: none. `MMK_NAMESPACE`. */
  namespace?: string
  /**
   * Refuse to run when an applied file has changed, and to commit a migration that has written outside
   * its transaction. Default `false`. `MMK_STRICT`.
   */
  strict: boolean
  /**
   * Run each body in a transaction. Default `false`. `MMK_USE_TRANSACTION`. When the server gives a
   * transaction up for a passing reason, the body runs again from its start.
   */
  useTransaction: boolean
  /**
   * How long after the first attempt a transaction is still tried again, and how long a commit without
   * an answer is sent again. 0: never; 2 147 483 647 at most. Default 120 000.
   * `MMK_TRANSACTION_RETRY_TIMEOUT_MS`.
   */
  transactionRetryTimeoutMs: number
  /** What counts as a migration. Default: `.js .mjs .cjs .ts .mts .cts`. */
  fileExtensions: string[]
  /** What `create` writes. Default `'js'`. `MMK_CREATE_EXTENSION`. */
  createExtension: MigrationExtension
  /** `0001-` instead of a time stamp. Default `false`. `MMK_SEQUENTIAL`. */
  sequential: boolean
  /** The template that `create` copies. */
  templatePath?: string
  /** Stored in entries. Default: the name in the nearest package.json. `MMK_SERVICE`. */
  service?: string
  /**
   * What a run does that finds the lock held. Default `'throw'`: a {@link LockAlreadyHeldError};
   * `'wait'` waits its turn. `MMK_ON_LOCK_HELD`.
   */
  onLockHeld: OnLockHeld
  /**
   * How long `'wait'` waits. Default 30 000, and then until the holder is seen to renew (up to half a
   * minute more) or, if it doesn't, to the end of its lease; a value that you set is a hard cap,
   * and at most 2 147 483 647. `MMK_LOCK_WAIT_TIMEOUT_MS`.
   */
  lockWaitTimeoutMs?: number
  /**
   * What a run does that has lost its lock. Default `'stop'`: it stops, with a {@link LockLostError}.
   * `'warn'` goes on beside whoever has the lock now, as 1.x did: bodies are not told, a warning comes
   * at every renewal that would be due, and only what no other run has moved is recorded; the first
   * thing that can't be recorded ends the run with a {@link LockLostError}. `MMK_ON_LOCK_LOST`.
   */
  onLockLost: 'stop' | 'warn'
  /** What `up` does with a failed or interrupted migration. Default `'retry'`. `MMK_ON_INTERRUPTED`. */
  onInterrupted: 'retry' | 'stop'
  /** A pending file that sorts before an applied one. Default `'warn'`. `MMK_OUT_OF_ORDER`. */
  outOfOrder: 'allow' | 'warn' | 'error'
  /** Your own client for the bodies, beside `uri`. Never closed by us. */
  client?: MongoClient
  /** Your Mongoose instance, handed to bodies; once connected, they run on its client. */
  // biome-ignore lint/suspicious/noExplicitAny: the type would force mongoose on everyone
  mongoose?: any
  /**
   * How the lock's own connection reaches the same servers, where it can't use `uri`: for mechanisms
   * that the Node driver alone has. `mongoClientOptions` don't count for it. `MMK_LOCK_URI`.
   */
  lockUri?: string
  /**
   * For the client that we make for the bodies. What says how to connect also counts for the lock's own
   * connection, unless there is a `lockUri`; what can't reach it is refused by name.
   */
  mongoClientOptions?: MongoClientOptions
  hooks?: MigrationHooks
  /** `null` is silent. Default: the console, as the CLI writes. */
  logger?: MmkLogger | null
  /** Told of everything that happens, as it happens. What it throws is ignored. */
  onEvent?: (event: MmkEvent) => void
}

/** What a configuration file may export. */
export type MmkConfigInput =
  | Partial<MmkConfig>
  | (() => Partial<MmkConfig> | Promise<Partial<MmkConfig>>)

export interface MigrationHooks {
  /** Once, before the first migration. */
  beforeAll?(context: HookContext): unknown
  /** Once, after the last migration. Not after a failure. */
  afterAll?(context: HookContext): unknown
  beforeEach?(name: string, context: HookContext): unknown
  /** After a migration was recorded. `duration` is the body alone. */
  afterEach?(name: string, duration: number, context: HookContext): unknown
  /** When a body threw, with the value that it threw. */
  // biome-ignore lint/suspicious/noExplicitAny: anything can be thrown; 1.x typed it as Error
  onError?(name: string, error: any, context: HookContext): unknown
}

export interface MmkLogger {
  info(message: string): void
  success(message: string): void
  warn(message: string): void
  error(message: string): void
  dim(message: string): void
}

/** For an indicator on a screen. */
export interface ProgressReporter {
  onStart(name: string, direction: 'up' | 'down'): void
  onStop(): void
}

export type OnLockHeld = 'throw' | 'wait'

// ---------------------------------------------------------------------------------------- options

export interface MigratorKitOptions {
  /** Read this configuration file instead of looking for one. */
  configPath?: string
  progress?: ProgressReporter
  /** Configuration that wins over everything and is called a command-line flag in messages. */
  flags?: Partial<MmkConfig>
}

/** How one run meets the lock. What is left out comes from the configuration. */
export interface LockOptions {
  /** Don't take the lock. Unsafe as soon as anything else can run. Default `false`. */
  noLock?: boolean
  onLockHeld?: OnLockHeld
  lockWaitTimeoutMs?: number
  /** How often to look again where the server can't tell us, 10 or more. Default: chosen by the core. */
  lockPollIntervalMs?: number
  /**
   * Ends the run: a wait for the lock at once; otherwise `ctx.signal` aborts, the running body gets
   * 5 s to settle, and no other is started. What was done stays recorded.
   */
  signal?: AbortSignal
}

export interface RunMigrationsOptions extends MigratorKitOptions, LockOptions {
  onEvent?: (event: MmkEvent) => void
  /** Run what another tool has applied already, as its changelog beside an empty one of ours says. */
  forceFresh?: boolean
}

/** Configuration and options in one object. */
export type RunMigrationsInput = Partial<MmkConfig> & RunMigrationsOptions

/** Configuration and options in one object. */
export type PendingMigrationsInput = Partial<MmkConfig> & MigratorKitOptions

export interface UpOptions extends LockOptions {
  /** Run the named file again although it is applied. Needs a file. */
  force?: boolean
  /** Give each migration a batch of its own. */
  step?: boolean
  /** Apply what is pending up to and including this file. Not together with a file. */
  to?: string
  /** Run what another tool has applied already, as its changelog beside an empty one of ours says. */
  forceFresh?: boolean
}

/** A file, `to`, `batch` and `steps` exclude each other. */
export interface DownOptions extends LockOptions {
  /** Revert everything that was applied after this file, newest first. The file itself stays. */
  to?: string
  /** Revert this batch instead of the last. */
  batch?: number
  /** Revert this many migrations, newest first. */
  steps?: number
  /** Revert although a file has changed since it was applied. */
  force?: boolean
}

/** The options of the run that is tried; `batch` and `steps` are for `'down'`. */
export interface DryRunOptions {
  to?: string
  batch?: number
  steps?: number
  force?: boolean
  forceFresh?: boolean
}

export interface MarkOptions {
  /** Why: stored in the entry for whoever reads it later. */
  reason?: string
}

export interface ImportOptions {
  /** The collection to read. Default: the tool's usual one, `'changelog'` if none is named. */
  from?: string
  /** The collection to write. Default: the configuration's `migrationsCollection`. */
  to?: string
  /** Who wrote it. Default: found out by the shape of its documents. */
  tool?: ImportTool
  /** Only tell what would be written. */
  dryRun?: boolean
  /** Store the source's checksums even when the files have changed since. */
  trustHash?: boolean
  /** Leave out migrations whose file is not here, as when several apps share one changelog. */
  skipMissing?: boolean
  /** Import although the target has entries and none came from this source. */
  force?: boolean
  /** Don't take the lock. Unsafe as soon as anything else can run. Default `false`. */
  noLock?: boolean
  /** Ends the import; what was written stays, and the next one goes on from there. */
  signal?: AbortSignal
}

export interface StatusOptions {
  /** Reject with {@link MigrationsDirNotFoundError} instead of warning. Default `false`. */
  requireDirectory?: boolean
}

export interface ForceUnlockOptions {
  /**
   * The `owner` of the lock that was shown, so that no other is removed; `null` for a lock that names
   * none. Default: whoever holds it now.
   */
  owner?: string | null
}

export interface CreateOptions {
  /** Path of a template to copy. */
  template?: string
  /** Write JavaScript whatever the configuration says. */
  js?: boolean
  /** Write TypeScript whatever the configuration says. */
  ts?: boolean
}

export type ConfigFormat = 'ts' | 'js' | 'json'

export interface InitOptions {
  /** Default `'ts'` where there is a `tsconfig.json`, else `'js'`. */
  format?: ConfigFormat
  /** Overwrite a configuration file. Default `false`. */
  force?: boolean
  /** Write a factory that fetches the URI when it is needed. Not for JSON. */
  secretProvider?: boolean
}

// ---------------------------------------------------------------------------------------- results

export interface MigrationSummary {
  applied: RunResult[]
  /** Nothing was pending. */
  upToDate: boolean
  /** Did this call wait for another run? */
  waited: boolean
  waitedMs: number
  metrics: RunMetrics
}

/** Counts of one run; all are 0 when nothing was pending from the start. */
export interface RunMetrics {
  /** How long the lock was waited for. */
  lockWaitMs: number
  /** Heartbeats that the server has confirmed. */
  renewals: number
  /** 1 if the lock was taken from a holder whose lease had run out. */
  takeovers: number
  /** Entries that another run had moved first. */
  claimConflicts: number
  /** Operations of dead runs that were still going on on the server, and were stopped. */
  orphansKilled: number
}

/** `'error'` is never returned: a migration that fails rejects the call. 1.x had it in its type. */
export type RunResultStatus = 'applied' | 'reverted' | 'skipped' | 'error'

export interface RunResult {
  file: string
  status: RunResultStatus
  /** The body alone, without the commit. */
  duration?: number
  /** For `up`. */
  batch?: number
  /** Why it was skipped (`'Already applied'`) or marked. */
  reason?: string
  /** Did it run in a transaction? */
  transaction: boolean
  /** How often its body ran, when its transaction had to be tried again. */
  attempts?: number
}

export type EntryState = 'pending' | 'running' | 'interrupted' | 'failed' | 'applied' | 'reverted'

export interface StatusRow {
  file: string
  status: 'applied' | 'pending'
  /** The same with all that is known. A reverted one is `'pending'` in `status`. */
  state: EntryState
  /** What a running, interrupted or failed migration was doing. */
  direction: 'up' | 'down' | null
  batch: number | null
  appliedAt: Date | null
  duration: number | null
  /** `null`: not applied, or the file is gone. */
  checksumOk: boolean | null
  description?: string
  /** It has an entry but no file. */
  missing: boolean
  startedAt: Date | null
  /** Who runs it or ran it. */
  executedBy: string | null
  host: string | null
  /** Why it failed the last time. */
  error: { name: string; message: string } | null
}

/** The lock as it was read. Odd documents leave fields `null`. */
export interface LockInfo {
  /** The last renewal. */
  lockedAt: Date | null
  pid: number | null
  host: string | null
  executedBy: string | null
  /** `null` is the default namespace, or a runner that knows none. */
  namespace: string | null
  owner: string | null
  runId: string | null
  operation: string | null
  /** The migration that it is running, if it says so. */
  running: string | null
  acquiredAt: Date | null
  /** When it frees itself unless renewed. */
  expiresAt: Date | null
  ttlMs: number | null
  /** Renewals so far. */
  beats: number | null
  /** The server's clock at this reading. */
  now: Date
  /** Would the next run get the lock? */
  expired: boolean
}

/** A document of the changelog. */
export interface MigrationRecord {
  name: string
  batch: number
  status: MigrationStatus
  appliedAt: Date
  revertedAt?: Date
  duration: number
  checksum: string
  environment: string
  executedBy: string
  description?: string
  service?: string
  origin?: MigrationOrigin
  /** Why it was marked by hand. */
  reason?: string
  /** How the entry stood before, newest last, at most ten: docs/formats.md. */
  history?: Record<string, unknown>[]
}

export type MigrationStatus = 'applied' | 'reverted' | 'running' | 'failed'
export type MigrationOrigin = 'mmk' | 'mark' | ImportTool

/** The tools whose changelog can be imported. */
export type ImportTool =
  | 'migrate-mongo'
  | 'mongoat'
  | 'ts-migrate-mongoose'
  | 'mongo-migrate-ts'
  | 'umzug'
  | 'east'

export type ImportChecksumSource = 'reused' | 'recomputed' | 'missing'

/** An entry that an import wrote, or would write. */
export interface ImportRow {
  file: string
  batch: number
  /** `null`: the source keeps no times, and the entry gets the time of the import. */
  appliedAt: Date | null
  /** `''`: there is nothing to compare the file with. */
  checksum: string
  checksumSource: ImportChecksumSource
}

/** A document that became no entry. */
export interface ImportRejection {
  /** Its `_id` as text. */
  id: string
  why: 'malformed' | 'notApplied' | 'superseded' | 'noFile'
  /** The same in words. */
  reason: string
  /** The file that the next `up` will run although this document may say that it was applied. */
  file: string | null
}

export interface ImportResult {
  /** The collection that was read. */
  source: string
  /** The collection that was written. */
  target: string
  /** `null` when the source is empty. */
  tool: ImportTool | null
  /** How many entries were written: 0 for a dry run. */
  imported: number
  /** How many documents were left out. */
  skipped: number
  /** How many migrations had an entry already. */
  alreadyThere: number
  dryRun: boolean
  rows: ImportRow[]
  rejected: ImportRejection[]
}

/** A document of migrate-mongo's changelog. */
export interface MigrateMongoDoc {
  fileName: string
  appliedAt: Date
  fileHash?: string
  migrationBlock?: number
}

// ----------------------------------------------------------------------------------------- events

/** The holder as events carry it: instants are milliseconds since 1970. */
export interface LockHolder {
  owner: string | null
  runId: string | null
  namespace: string | null
  host: string | null
  pid: number | null
  user: string | null
  operation: string | null
  running: string | null
  acquiredAt: number | null
  lockedAt: number | null
  expiresAt: number | null
  now: number
  ttlMs: number | null
  beats: number | null
  expired: boolean
}

/** What an event tells of a thrown value. */
export interface EventError {
  code: string | null
  name: string
  message: string
  context: Record<string, unknown>
}

export interface ClaimState {
  status: string
  version: number | null
  runId: string | null
}

export type MmkEvent =
  | { type: 'lockWaiting'; holder: LockHolder; retryInMs: number }
  | { type: 'lockAcquired'; owner: string; runId: string; tookOverFrom: string | null }
  | { type: 'leaseRenewed'; beats: number }
  | { type: 'renewalFailed'; message: string }
  | { type: 'lockArmed'; fencingToken: number }
  | { type: 'orphansFound'; runId: string; operations: string[] }
  | { type: 'leaseLost'; cause: 'superseded' | 'deadline' | 'fenced' }
  | { type: 'lockReleased' }
  | { type: 'planned'; direction: 'up' | 'down'; names: string[] }
  | {
      type: 'migrationStarted'
      name: string
      direction: 'up' | 'down'
      position: number
      total: number
      rerunOf: 'interrupted' | 'failed' | null
      forced: boolean
    }
  | {
      type: 'migrationFinished'
      name: string
      status: 'applied' | 'reverted'
      durationMs: number
      batch: number | null
      transaction: boolean
      /** How often its body ran. */
      attempts: number
    }
  /** The server gave up the transaction, and the body begins once more: `attempt` counts from 2. */
  | { type: 'transactionRetried'; name: string; attempt: number; reason: string }
  | {
      type: 'migrationMarked'
      name: string
      status: 'applied' | 'reverted'
      reason: string | null
    }
  | { type: 'migrationSkipped'; name: string; reason: string }
  | { type: 'migrationFailed'; name: string; direction: 'up' | 'down'; error: EventError | null }
  | { type: 'claimConflict'; name: string; expected: ClaimState; found: ClaimState | null }
  | { type: 'warning'; code: string; message: string; context: Record<string, unknown> }

// ----------------------------------------------------------------------------------------- errors

export type MmkErrorCode =
  | 'LOCK_ALREADY_HELD'
  | 'LOCK_LOST'
  | 'LOCK_ORPHANS'
  | 'LOCK_RELEASE_FAILED'
  | 'RUN_CANCELLED'
  | 'CHANGELOG_CONFLICT'
  | 'OUTCOME_UNKNOWN'
  | 'CHECKSUM_MISMATCH'
  | 'MIGRATION_FILE_NOT_FOUND'
  | 'MIGRATIONS_DIR_NOT_FOUND'
  | 'MIGRATION_INVALID_NAME'
  | 'MIGRATION_INVALID_EXPORT'
  | 'MIGRATION_LOAD_FAILED'
  | 'MIGRATION_EXECUTION_FAILED'
  | 'MIGRATION_INTERRUPTED'
  | 'MIGRATION_OUT_OF_ORDER'
  | 'MIGRATION_IRREVERSIBLE'
  | 'CONFIG_INVALID'
  | 'CONFIG_FILE_EXISTS'
  | 'INVALID_ARGUMENT'
  | 'CONNECTION_FAILED'
  | 'ALREADY_APPLIED'
  | 'NOT_APPLIED'
  | 'FOREIGN_CHANGELOG'
  | 'NAMESPACE_INDEX'
  | 'IMPORT_TARGET_NOT_EMPTY'
  | 'TRANSACTIONS_UNSUPPORTED'
  | 'DATABASE_ERROR'
  | 'HOOK_FAILED'
  | 'DEPENDENCY_MISSING'
  | 'INTERNAL'

export interface ErrorDetails {
  context?: Record<string, unknown>
  hint?: string | null
  certainty?: 'known' | 'unknown'
  cause?: unknown
  suppressed?: MmkError[]
}

/** The base of every error that we make. Messages and contexts carry no secrets. */
export class MmkError extends Error {
  constructor(code: MmkErrorCode, message: string, details?: ErrorDetails)
  /** Stable: branch on this, not on the message. */
  readonly code: MmkErrorCode
  /**
   * Facts about this error; which ones depends on `code`. Of a run also what it had `done`, what was
   * `notStarted`, and its `metrics`, as in `MigrationSummary`.
   */
  readonly context: Record<string, unknown>
  /** What to do about it, in a sentence. */
  readonly hint: string | null
  /** Its section in docs/errors.md of this package: a path, from the folder of your app. */
  readonly docsUrl: string
  /** Is it known what happened in the database? */
  readonly certainty: 'known' | 'unknown'
  /** What happened after it (a failed release or disconnect), which must not hide it. */
  readonly suppressed: readonly MmkError[]
  /** For the failure of a migration or hook: the identical value that your code threw. */
  // biome-ignore lint/suspicious/noExplicitAny: anything can be thrown
  readonly cause?: any
}

declare class CodedError extends MmkError {
  constructor(message: string, details?: ErrorDetails)
}

/** Another run holds the lock. `context.holder` is a {@link LockInfo}. */
export class LockAlreadyHeldError extends CodedError {}
/**
 * The lock was lost in mid-run: nothing more was started or recorded. With `onLockLost: 'warn'`: a
 * migration could not be recorded, because another run has moved its entry or has begun.
 */
export class LockLostError extends CodedError {}
/** Operations of a run that died are still going on on the server. */
export class LockOrphansError extends CodedError {}
/**
 * The run was ended by `signal`, or by a signal to the process. `context.settled` is `false` when the
 * body that was running did not end in time; `cause` is the reason of your `signal`.
 */
export class RunCancelledError extends CodedError {}
/** The lock could not be released; it frees itself when its lease ends. */
export class LockReleaseFailedError extends CodedError {}
/** Someone else moved an entry that this run was about to write. */
export class ChangelogConflictError extends CodedError {}
/** A write was sent and its outcome could not be learned. */
export class OutcomeUnknownError extends CodedError {}
/** An applied file has changed. */
export class ChecksumMismatchError extends CodedError {}
/** A file that was named, that a revert needs, or that `create` was to copy is not there. */
export class MigrationFileNotFoundError extends CodedError {}
/** `migrationsDir` isn't there, and a run or `requireDirectory` wants it. */
export class MigrationsDirNotFoundError extends CodedError {}
/** A name that is no plain file name. */
export class MigrationInvalidNameError extends CodedError {}
/** `context`: `{ filepath, missing, exports }`. */
export class MigrationInvalidExportError extends CodedError {}
/** A file could not be loaded: a syntax error, or what its top level threw (`cause`). */
export class MigrationLoadFailedError extends CodedError {}
/** A body threw. `context`: `{ name, direction, cause, location? }`; `cause` is what it threw. */
export class MigrationExecutionFailedError extends CodedError {}
/** A migration was interrupted and a person must look at it first. */
export class InterruptedMigrationError extends CodedError {}
/** A pending file sorts before an applied one, and `outOfOrder` is `'error'`. */
export class MigrationOutOfOrderError extends CodedError {}
/** A migration that was to be reverted has no `down`. Nothing was reverted. */
export class IrreversibleMigrationError extends CodedError {}
/**
 * `context.issues` is a {@link ConfigIssue} list, `context.notes` says what else may be the reason (no file
 * found, an unknown variable); or `{ path, cause }` for a file that can't be read.
 */
export class ConfigInvalidError extends CodedError {}
/** `init` found a configuration file, and was not given `force`. */
export class ConfigFileExistsError extends CodedError {}
/** An argument is missing, malformed or contradicts another. */
export class InvalidArgumentError extends CodedError {}
/**
 * The server can't be reached, or does not allow us what we need. `context`: `{ cause, uri, dbName }`,
 * the URI without its secrets.
 */
export class ConnectionFailedError extends CodedError {}
/** The server refused an operation of ours for another reason than who we are. */
export class DatabaseError extends CodedError {}
/** A hook threw; `cause` is what it threw. What was applied stays applied. */
export class HookFailedError extends CodedError {}
/** Kept for programs that know it from 1.x, and never thrown: what is applied already is skipped. */
export class AlreadyAppliedError extends CodedError {}
/** A migration that is to be reverted, or that `down` names in `to`, is not applied. */
export class NotAppliedError extends CodedError {}
/** Another tool's changelog lies beside an empty one of ours. */
export class ForeignChangelogError extends CodedError {}
/**
 * Another namespace has entries of the same names, and an index that 1.x has left in the collection lets
 * each name in once only. `context`: `{ collection, index, names, command }`, where `command` drops it.
 */
export class NamespaceIndexError extends CodedError {}
/** The target of an import has a history, none of it from this source, and `force` was not given. */
export class ImportTargetNotEmptyError extends CodedError {}
/** The server is a standalone, which has no transactions. `context.names` wanted one. Nothing was run. */
export class TransactionsUnsupportedError extends CodedError {}
/** A package that we need isn't installed: the core for this platform, or the `mongodb` driver. */
export class DependencyMissingError extends CodedError {}

/** One problem of the configuration. */
export interface ConfigIssue {
  key: string
  /** Reads after the key: "dbName is required but was not set". */
  problem: string
  /** The value, without secrets. */
  received?: string
  /** Where the value came from. */
  source?: string
  howToSet?: string
}
