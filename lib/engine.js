/**
 * One resolved configuration with its core: what `runMigrations` and `MigratorKit` both drive.
 *
 * Promises: every failure is one of our errors.
 */
import { cautions, warning } from './cautions.js'
import { closing } from './closing.js'
import { resolveConfig, toSettings } from './config/index.js'
import { openCore, unwrap } from './core.js'
import { isMmkError, MigrationsDirNotFoundError, RunCancelledError } from './errors.js'
import { lateHost } from './late-host.js'
import { createLogger } from './logger.js'
import { redactUri } from './redact.js'
import { createReporter, nothingText, rehearsalText } from './reporter.js'
import { createCauses } from './thrown.js'

/** @import { Event, Holder, Reply, RunReport, RunRequest } from './contract.d.ts' */
/** @import { StatusReport, StatusRow } from './contract.d.ts' */
/** @import { MigratorKitOptions, MmkConfig, MmkEvent, MmkLogger } from '../index.d.ts' */
/** @import { Resolved } from './config/index.js' */
/** @import { Core } from './core.js' */
/** @import { Causes } from './thrown.js' */

/**
 * The functions are for the command line, which hands over its signals and tells in JSON what a run
 * or a look at the state came to.
 * @typedef {MigratorKitOptions & {
 *   onCore?: (core: Core) => void
 *   onEvent?: (event: Event) => void
 *   onReport?: (report: RunReport | StatusReport) => void
 * }} KitOptions
 */

/**
 * @typedef {object} Engine
 * @property {Resolved} resolved
 * @property {MmkLogger | null} logger
 * @property {(event: Event) => void} report
 * @property {Core} core
 * @property {KitOptions['onReport']} [onReport]
 */

/**
 * @param {Partial<MmkConfig>} argument
 * @param {KitOptions} options
 * @returns {Promise<Engine>}
 */
export async function openEngine(argument, options) {
  const { configPath, flags, progress, onCore, onEvent, onReport } = options
  const resolved = await resolveConfig({ argument, flags, configPath })
  const { config, warnings } = resolved
  const logger = config.logger === undefined ? createLogger() : config.logger
  const log = createReporter({ logger, progress })
  const report = (/** @type {Event} */ event) => {
    log(event)
    onEvent?.(event)
  }
  for (const message of warnings) report(warning('CONFIG', message))
  const core = await openCore(toSettings(config))
  onCore?.(core)
  return { resolved, logger, report, core, onReport }
}

/** @param {Engine} engine */
export async function connect(engine) {
  return replyValue(engine, await engine.core.connect())
}

/**
 * The value of a reply, or its error: a connection that failed says which.
 * @template T
 * @param {Engine} engine
 * @param {Reply<T>} reply
 * @param {Causes} [causes]
 * @returns {Promise<T>}
 */
export async function replyValue({ resolved: { config } }, reply, causes = createCauses()) {
  try {
    return await unwrap(reply, causes)
  } catch (error) {
    if (isMmkError(error) && error.code === 'CONNECTION_FAILED') {
      Object.assign(error.context, {
        uri: redactUri(config.lockUri ?? config.uri),
        dbName: config.dbName,
      })
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
  const server = async () => replyValue(engine, await core.connect(), causes)
  const host = lateHost({ config, logger, causes, emit: report, fresh, server })
  for (const event of cautions(config)) host.emit(event)
  const result = await closing(
    () =>
      cancellable(core, signal, async () => {
        return replyValue(engine, await core.run(request, host), causes)
      }),
    () => host.close(),
    report,
  )
  engine.onReport?.(result)
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
  const host = lateHost({ config, logger, causes, emit: report })
  const rows = await replyValue(engine, await core.rehearse(request, host), causes)
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
 * @param {Engine} engine
 * @param {{ requireDirectory?: boolean }} [options]
 * @returns {Promise<StatusRow[]>}
 */
export async function status(engine, { requireDirectory } = {}) {
  const { config } = engine.resolved
  const found = await replyValue(engine, await engine.core.status())
  engine.onReport?.(found)
  const { rows, directoryFound } = found
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
