/**
 * One resolved configuration with its core: what `runMigrations` and `MigratorKit` both drive. Runs
 * are in `running.js`, so that a look at the state loads nothing of them.
 *
 * Promises: every failure is one of our errors.
 */
import { warning } from './cautions.js'
import { resolveConfig, toSettings } from './config/index.js'
import { openCore, unwrap } from './core.js'
import { isMmkError, MigrationsDirNotFoundError } from './errors.js'
import { createLogger, LEVELS } from './logger.js'
import { redactUri } from './redact.js'
import { createReporter } from './reporter.js'
import { unheardMethods } from './unheard.js'

/** @import { Event, Holder, Reply, RunReport, StatusReport, StatusRow } from './contract.d.ts' */
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
  const given = config.logger && unheardMethods(config.logger, LEVELS)
  const logger = given === undefined ? createLogger() : given
  const log = createReporter({
    logger,
    progress: progress && unheardMethods(progress, ['onStart', 'onStop']),
  })
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
 * @param {Causes} [causes] where the host of a run kept what was thrown
 * @returns {Promise<T>}
 */
export async function replyValue({ resolved: { config } }, reply, causes) {
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
