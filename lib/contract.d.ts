/**
 * The private contract between the JavaScript side and the Rust core: everything that crosses the
 * binding, and nothing else. `src/bridge` carries these shapes without looking into them; the Rust
 * types that own them are named beside each one. Instants are milliseconds since 1970 on the SERVER's
 * clock, durations are whole milliseconds, an absent value is `null`.
 */

/** What a kit hands over once (`config::Settings`). Every value is resolved and checked. */
export interface Settings {
  /** For the core's own driver: `lib/config/connection.js` makes it. */
  uri: string
  /** Of `serverApi`; `null`: none is declared. */
  apiVersion: string | null
  dbName: string
  /** Absolute path. */
  migrationsDir: string
  /** With their dots: `['.js', '.ts']`. */
  fileExtensions: string[]
  migrationsCollection: string
  lockCollection: string
  /** `null` is the default namespace. */
  namespace: string | null
  lockTtlSeconds: number
  onLockLost: 'stop' | 'warn'
  strict: boolean
  useTransaction: boolean
  onInterrupted: 'retry' | 'stop'
  outOfOrder: 'allow' | 'warn' | 'error'
  /** Are there hooks that run between two migrations (`host::Between`)? */
  between: 'nothing' | 'hooks'
  /** Who we are, for the lock document and the entries. */
  host: string
  pid: number
  user: string
  /** `NODE_ENV` or `'development'`; stored in entries. */
  environment: string
  service: string | null
}

/** How to meet a lock that another process holds (`lock::wait::WaitPolicy`). */
export interface LockPolicy {
  noLock: boolean
  onLockHeld: 'throw' | 'wait'
  /** `null`: not set by anyone, so the default of 30 000 applies with its extension. */
  lockWaitTimeoutMs: number | null
  lockPollIntervalMs: number | null
}

/** One run (`plan::Request` and the lock policy). */
export type RunRequest = LockPolicy &
  (
    | {
        command: 'up'
        file: string | null
        to: string | null
        step: boolean
        force: boolean
        /** Run what another tool has applied already. */
        forceFresh: boolean
      }
    | {
        command: 'down'
        file: string | null
        to: string | null
        batch: number | null
        steps: number | null
        force: boolean
      }
    | { command: 'redo'; file: string | null }
    | { command: 'mark'; file: string; state: 'applied' | 'pending'; reason: string | null }
  )

/** A failure as data (`error::Failure`). `lib/errors.js` makes the real error of it. */
export interface Failure {
  /** One of the public error codes: `'LOCK_ALREADY_HELD'`, `'MIGRATION_EXECUTION_FAILED'` … */
  code: string
  /** One sentence, without secrets. */
  message: string
  hint: string | null
  /** Is it known what happened in the database? */
  certainty: 'known' | 'unknown'
  context: Record<string, unknown>
  /** The `causeId` of the thrown value that lies behind it; the host keeps the value itself. */
  causeId: number | null
  /** Later failures (release, hooks) that must not hide this one. */
  suppressed: Failure[]
}

/** Every call of the core that can fail in a way that belongs to the domain resolves to this. */
export type Reply<T> = { ok: true; value: T } | { ok: false; error: Failure; results: RunResult[] }

/** What one migration came to (`runner::report`). */
export interface RunResult {
  file: string
  status: 'applied' | 'reverted' | 'skipped'
  durationMs: number | null
  batch: number | null
  reason: string | null
  /** Did it run in a transaction? */
  transaction: boolean
  /** How often its body ran: 0 without one, more than 1 when its transaction was tried again. */
  attempts: number
}

export interface Metrics {
  lockWaitMs: number
  renewals: number
  takeovers: number
  claimConflicts: number
  orphansKilled: number
}

export interface RunReport {
  results: RunResult[]
  upToDate: boolean
  waited: boolean
  waitedMs: number
  metrics: Metrics
}

/** The server that the core's connection found (`engine::Server`). */
export interface Server {
  transactions: boolean
  setName: string | null
  /** Which process answered, in hexadecimal; of a router nothing. */
  process: string | null
}

/** One import (`config::import::ImportRequest`). */
export interface ImportRequest {
  /** `null`: where the tool keeps its changelog by default. */
  from: string | null
  /** `null`: the configured changelog. */
  to: string | null
  /** `null`: found out by the shape of the documents. */
  tool: string | null
  dryRun: boolean
  trustHash: boolean
  skipMissing: boolean
  force: boolean
  noLock: boolean
}

/** Another tool's changelog, while nothing of ours has run (`engine::import::NeighbourReport`). */
export interface Neighbour {
  collection: string
  tool: string
  /** How many there are. */
  documents: number
  /** Files without an entry of ours that it says are applied. */
  pending: string[]
  /** Takes it over. */
  command: string
}

/** What an import came to (`import::adopt::ImportReport`). */
export interface ImportReport {
  source: string
  target: string
  /** `null` when the source is empty. */
  tool: string | null
  imported: number
  skipped: number
  alreadyThere: number
  dryRun: boolean
  rows: {
    file: string
    batch: number
    /** `null`: the source keeps no times. */
    appliedAt: number | null
    checksum: string
    checksumSource: 'reused' | 'recomputed' | 'missing'
  }[]
  rejected: {
    id: string
    why: 'malformed' | 'notApplied' | 'superseded' | 'noFile'
    reason: string
    /** The file that the next `up` will run although the document may say that it was applied. */
    file: string | null
  }[]
  /** Files that differ from what the source says was applied, accepted as they are. */
  changed: string[]
}

/** A lock document as read, however odd its shape (`lock::lease::Holder`). */
export interface Holder {
  owner: string | null
  runId: string | null
  /** `null` is the default namespace (or a runner that knows none). */
  namespace: string | null
  host: string | null
  pid: number | null
  user: string | null
  operation: string | null
  /** The migration that it is running now, if it says so. */
  running: string | null
  acquiredAt: number | null
  lockedAt: number | null
  expiresAt: number | null
  /** The server's clock when this was read. */
  now: number
  ttlMs: number | null
  /** Renewals so far. */
  beats: number | null
  /** Would the next acquire get the lock? */
  expired: boolean
}

export type EntryState = 'pending' | 'running' | 'interrupted' | 'failed' | 'applied' | 'reverted'

export interface StatusRow {
  file: string
  status: 'applied' | 'pending'
  state: EntryState
  /** What a running, interrupted or failed entry was doing. */
  direction: 'up' | 'down' | null
  batch: number | null
  appliedAt: number | null
  durationMs: number | null
  /** `null`: not applied, or the file is gone. */
  checksumOk: boolean | null
  description: string | null
  /** Has an entry but no file. */
  missing: boolean
  startedAt: number | null
  runId: string | null
  /** Who is or was running it. */
  executedBy: string | null
  host: string | null
  error: { name: string; message: string } | null
}

export interface StatusReport {
  rows: StatusRow[]
  lock: Holder | null
  /** Is the migrations directory there? */
  directoryFound: boolean
}

/** What the host found in one migration file (`host::ModuleFacts`). */
export type ModuleFacts =
  | {
      ok: true
      name: string
      down: boolean
      useTransaction: boolean | null
      description: string | null
      onInterrupted: 'retry' | 'stop' | null
    }
  | { ok: false; name: string; error: HostError }

/** Something that the host's side threw. The value itself stays with the host under `causeId`. */
export interface HostError {
  /** A public error code, or `null` for what a user's body or hook threw. */
  code: string | null
  /** `error.name`, or the kind of value: `'string'`, `'undefined'`. */
  name: string
  message: string
  context: Record<string, unknown>
  causeId: number
}

export type HostReply = { ok: true } | { ok: false; error: HostError }

/** Run one body (`host::BodyCall`). */
export interface BodyCall {
  name: string
  direction: 'up' | 'down'
  runId: string
  /** `null` when there is no lock, or on servers without fencing. */
  fencingToken: number | null
  /**
   * `null`: run it plainly. Otherwise run it in a transaction of the handed-out session, then, as
   * its last statements before the commit, this command and `fence` (BSON); both must report `n`
   * equal to 1.
   */
  settle: Buffer | null
  /**
   * The command (BSON) that makes a transaction fail if a later run has begun: `n` is 1 while none
   * has. `null` without a lock.
   */
  fence: Buffer | null
}

/** How a body ended (`host::BodyReply`). `durationMs` is its last attempt, without the commit. */
export type BodyReply =
  | { outcome: 'done'; durationMs: number; attempts: number }
  | { outcome: 'threw'; durationMs: number; error: HostError }
  /** The settle command matched nothing: someone else moved the entry. Rolled back. */
  | { outcome: 'conflict'; durationMs: number }
  /** The fence command matched nothing: a later run has begun. Rolled back. */
  | { outcome: 'fenced'; durationMs: number }
  /** The commit's outcome could not be learned. */
  | { outcome: 'unknown'; durationMs: number; error: HostError }

export type HookCall =
  | { hook: 'beforeAll' | 'afterAll' }
  | { hook: 'beforeEach'; name: string }
  | { hook: 'afterEach'; name: string; durationMs: number }
  | { hook: 'onError'; name: string; causeId: number }

/** The functions that the core awaits while a run lasts. None of them may reject: they report. */
export interface Host {
  /** Load and check files. Called again with later names when more have become pending. */
  load(names: string[]): Promise<ModuleFacts[]>
  /** Connect the Node driver. Called once, before the lock is asked for. */
  connect(connection: { appName: string }): Promise<HostReply>
  run(call: BodyCall): Promise<BodyReply>
  hook(call: HookCall): Promise<HostReply>
  /** The lease is lost or the run is cancelled: abort `ctx.signal` with this and close the client. */
  abort(reason: Failure): void
  emit(event: Event): void
}

/** What happens, as it happens (`event::Event`). Public through `onEvent`. */
export type Event =
  | { type: 'lockWaiting'; holder: Holder; retryInMs: number }
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
      /** It ran before and did not finish. */
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
      attempts: number
    }
  /** Told by the host: the body begins once more. `attempt` counts from 2, `reason` ended the last. */
  | { type: 'transactionRetried'; name: string; attempt: number; reason: string }
  | {
      type: 'migrationMarked'
      name: string
      status: 'applied' | 'reverted'
      reason: string | null
    }
  | { type: 'migrationSkipped'; name: string; reason: string }
  | { type: 'migrationFailed'; name: string; direction: 'up' | 'down'; error: HostError | null }
  | {
      type: 'claimConflict'
      name: string
      expected: { status: string; version: number | null; runId: string | null }
      found: { status: string; version: number | null; runId: string | null } | null
    }
  | { type: 'warning'; code: string; message: string; context: Record<string, unknown> }
