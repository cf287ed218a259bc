/**
 * One resolved configuration with its core: what `runMigrations` and `MigratorKit` both drive.
 *
 * Promises: every failure is one of our errors; a failure while closing is attached to the first
 * error, or becomes a warning when there was none, and never replaces it.
 */
import { resolveConfig, toSettings } from './config/index.js'
import { openCore, unwrap } from './core.js'
import { isMmkError, MigrationsDirNotFoundError, MmkError } from './errors.js'
import { createHost } from './host.js'
import { createLogger } from './logger.js'
import { redactUri } from './redact.js'
import { createReporter, nothingText } from './reporter.js'
import { createCauses, describeThrown } from './thrown.js'

/** @import { Event, Holder, Reply, RunReport, RunRequest, StatusRow } from './contract.d.ts' */
/** @import { MigratorKitOptions, MmkConfig, MmkEvent, MmkLogger } from '../index.d.ts' */
/** @import { Resolved } from './config/index.js' */
/** @import { Core } from './core.js' */
/** @import { Causes } from './thrown.js' */

/** Under this, a failover of the server can outlast the lease. */
const SHORT_TTL_SECONDS = 15
const DEFAULT_LOCK_COLLECTION = '_mmk_locks'

/**
 * @typedef {object} Engine
 * @property {Resolved} resolved
 * @property {MmkLogger | null} logger
 * @property {(event: Event) => void} report
 * @property {Core} core
 */

/**
 * @param {Partial<MmkConfig>} argument
 * @param {MigratorKitOptions} options
 * @returns {Promise<Engine>}
 */
export async function openEngine(argument, { configPath, flags, progress }) {
  const resolved = await resolveConfig({ argument, flags, configPath })
  const { config, warnings } = resolved
  const logger = config.logger === undefined ? createLogger() : config.logger
  const report = createReporter({ logger, progress })
  for (const message of warnings) report(warning('CONFIG', message))
  return { resolved, logger, report, core: await openCore(toSettings(config)) }
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
function replyValue({ resolved: { config } }, reply, causes = createCauses()) {
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
 * @returns {Promise<RunReport>}
 */
export async function run(engine, request) {
  const { core, logger, report } = engine
  const { config } = engine.resolved
  const causes = createCauses()
  const host = createHost({ config, logger, causes, emit: report })
  for (const event of cautions(config)) host.emit(event)
  const result = await closing(
    async () => replyValue(engine, await core.run(request, host), causes),
    () => host.close(),
    report,
  )
  if (result.results.length === 0) logger?.info(nothingText(request.command))
  return result
}

/**
 * What is worth saying at every run.
 * @param {Readonly<MmkConfig>} config
 * @returns {Event[]}
 */
function cautions({ lockTTLSeconds, lockCollection }) {
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

/**
 * Does the work, then closes, whatever the work came to.
 * @template T
 * @param {() => Promise<T>} work
 * @param {() => Promise<unknown>} close
 * @param {(event: Event) => void} report
 * @returns {Promise<T>}
 */
export async function closing(work, close, report) {
  /** @type {unknown} */
  let first
  try {
    return await work()
  } catch (error) {
    first = error
    throw error
  } finally {
    await closeQuietly(close, first, report)
  }
}

/**
 * @param {() => Promise<unknown>} close
 * @param {unknown} first
 * @param {(event: Event) => void} report
 */
async function closeQuietly(close, first, report) {
  try {
    await close()
  } catch (cause) {
    const { message } = describeThrown(cause, createCauses())
    const text = `Could not close a connection: ${message}`
    if (isMmkError(first)) first.suppressed.push(new MmkError('CONNECTION_FAILED', text, { cause }))
    else if (first === undefined) report(warning('DISCONNECT', text))
  }
}
