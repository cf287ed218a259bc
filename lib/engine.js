/**
 * One resolved configuration with its core: what `runMigrations` and `MigratorKit` both drive.
 *
 * Promises: every failure is one of our errors.
 */
import { closing } from './closing.js'
import { resolveConfig, toSettings } from './config/index.js'
import { openCore, unwrap } from './core.js'
import { isMmkError, MigrationsDirNotFoundError, RunCancelledError } from './errors.js'
import { createHost } from './host.js'
import { createLogger } from './logger.js'
import { redactUri } from './redact.js'
import { createReporter, nothingText, rehearsalText } from './reporter.js'
import { createCauses } from './thrown.js'

/** @import { Event, Holder, Reply, RunReport, RunRequest, StatusRow } from './contract.d.ts' */
/** @import { MigratorKitOptions, MmkConfig, MmkEvent, MmkLogger } from '../index.d.ts' */
/** @import { Resolved } from './config/index.js' */
/** @import { Core } from './core.js' */
/** @import { Causes } from './thrown.js' */

/** Under this, a failover of the server can outlast the lease. */
const SHORT_TTL_SECONDS = 15
const DEFAULT_LOCK_COLLECTION = '_mmk_locks'

/**
 * `onCore` is for the command line, which hands over its signals.
 * @typedef {MigratorKitOptions & { onCore?: (core: Core) => void }} KitOptions
 */

/**
 * @typedef {object} Engine
 * @property {Resolved} resolved
 * @property {MmkLogger | null} logger
 * @property {(event: Event) => void} report
 * @property {Core} core
 */

/**
 * @param {Partial<MmkConfig>} argument
 * @param {KitOptions} options
 * @returns {Promise<Engine>}
 */
export async function openEngine(argument, { configPath, flags, progress, onCore }) {
  const resolved = await resolveConfig({ argument, flags, configPath })
  const { config, warnings } = resolved
  const logger = config.logger === undefined ? createLogger() : config.logger
  const report = createReporter({ logger, progress })
  for (const message of warnings) report(warning('CONFIG', message))
  const core = await openCore(toSettings(config))
  onCore?.(core)
  return { resolved, logger, report, core }
}

/**
 * @param {string} code
 * @param {string} message
 * @returns {Event}
 */
function warning(code, message) {
  return { type: 'warning', code, message, context: {} }
}

/** @param {Engine} engine */
export async function connect(engine) {
  replyValue(engine, await engine.core.connect())
}

/**
 * The value of a reply, or its error: a connection that failed says which.
 * @template T
 * @param {Engine} engine
 * @param {Reply<T>} reply
 * @param {Causes} [causes]
 * @returns {T}
 */
export function replyValue({ resolved: { config } }, reply, causes = createCauses()) {
  try {
    return unwrap(reply, causes)
  } catch (error) {
    if (isMmkError(error) && error.code === 'CONNECTION_FAILED') {
      Object.assign(error.context, { uri: redactUri(config.uri), dbName: config.dbName })
    }
    throw error
  }
}

/**
 * @param {Engine} engine
 * @param {RunRequest} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<RunReport>}
 */
export async function run(engine, request, signal) {
  const { core, logger, report } = engine
  const { config } = engine.resolved
  const causes = createCauses()
  const fresh = request.command === 'redo'
  const host = createHost({ config, logger, causes, emit: report, fresh })
  for (const event of cautions(config)) host.emit(event)
  const result = await closing(
    () =>
      cancellable(core, signal, async () => {
        return replyValue(engine, await core.run(request, host), causes)
      }),
    () => host.close(),
    report,
  )
  if (result.results.length === 0) logger?.info(nothingText(request.command))
  return result
}

/**
 * @param {Engine} engine
 * @param {RunRequest} request
 * @returns {Promise<StatusRow[]>} what `run` would do, in its order
 */
export async function rehearse(engine, request) {
  const { core, logger, report } = engine
  const causes = createCauses()
  const { config } = engine.resolved
  const host = createHost({ config, logger, causes, emit: report })
  const rows = replyValue(engine, await core.rehearse(request, host), causes)
  logger?.info(rehearsalText(request.command, rows.length))
  return rows
}

/**
 * @template T
 * @param {Core} core
 * @param {AbortSignal | undefined} signal
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function cancellable(core, signal, work) {
  const cancel = () => core.cancel()
  if (signal?.aborted) {
    throw new RunCancelledError('The run was cancelled before it began', { cause: signal.reason })
  }
  signal?.addEventListener('abort', cancel)
  try {
    return await work()
  } catch (error) {
    if (error instanceof RunCancelledError && signal?.aborted) error.cause = signal.reason
    throw error
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}

/**
 * What is worth saying at every run.
 * @param {Readonly<MmkConfig>} config
 * @returns {Event[]}
 */
export function cautions({ lockTTLSeconds, lockCollection }) {
  const events = []
  if (lockTTLSeconds < SHORT_TTL_SECONDS) {
    const message = `lockTTLSeconds is ${lockTTLSeconds}: a failover of the server can outlast the lock`
    events.push(warning('SHORT_LOCK_TTL', message))
  }
  if (lockCollection !== DEFAULT_LOCK_COLLECTION) {
    const message = `lockCollection is "${lockCollection}": this run takes no turns with runs that use "${DEFAULT_LOCK_COLLECTION}"`
    events.push(warning('LOCK_COLLECTION', message))
  }
  return events
}

/**
 * @param {Engine} engine
 * @param {{ requireDirectory?: boolean }} [options]
 * @returns {Promise<StatusRow[]>}
 */
export async function status(engine, { requireDirectory } = {}) {
  const { config } = engine.resolved
  const { rows, directoryFound } = replyValue(engine, await engine.core.status())
  if (directoryFound) return rows
  const message = `The migrations directory does not exist: ${config.migrationsDir}`
  if (requireDirectory) {
    throw new MigrationsDirNotFoundError(message, {
      context: { migrationsDir: config.migrationsDir },
    })
  }
  engine.report(warning('MIGRATIONS_DIR_NOT_FOUND', message))
  return rows
}

/**
 * @param {Engine} engine
 * @returns {Promise<Holder | null>}
 */
export async function lock(engine) {
  return replyValue(engine, await engine.core.lock())
}

/**
 * @param {Engine} engine
 * @param {string | null} owner
 * @returns {Promise<Holder | null>}
 */
export async function forceRelease(engine, owner) {
  return replyValue(engine, await engine.core.forceRelease(owner))
}
