/**
 * The calls for an app's start: open, do one thing, close.
 */
import { closing } from './closing.js'
import { showValue } from './config/problems.js'
import * as engine from './engine.js'
import { InvalidArgumentError } from './errors.js'
import { upRequest } from './requests.js'
import { run } from './running.js'
import { statusRow, summary } from './shapes.js'

/** @import * as api from '../index.d.ts' */

/**
 * @param {api.RunMigrationsInput} [first] configuration and options, or the configuration alone
 * @param {api.RunMigrationsOptions} [second] the options, in the form of 1.x
 * @returns {Promise<api.MigrationSummary>}
 */
export async function runMigrations(first = {}, second = {}) {
  const { config, kit, lock } = split(merged(first, second))
  return withEngine(config, kit, async (open) => {
    const request = upRequest(undefined, lock, open.resolved.config)
    return summary(await run(open, request, lock.signal))
  })
}

/**
 * @param {api.PendingMigrationsInput} [first]
 * @param {api.MigratorKitOptions} [second]
 * @returns {Promise<api.StatusRow[]>}
 */
export async function pendingMigrations(first = {}, second = {}) {
  const { config, kit } = split(merged(first, second))
  return withEngine(config, kit, async (open) => {
    const rows = await engine.status(open)
    return rows.filter((row) => row.status === 'pending').map(statusRow)
  })
}

/**
 * @param {unknown[]} inputs
 * @returns {any}
 */
function merged(...inputs) {
  for (const input of inputs) {
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) continue
    throw new InvalidArgumentError(`Options are an object, not ${showValue(input)}`)
  }
  return Object.assign({}, ...inputs)
}

/**
 * Takes the options out; what remains is configuration, where an unknown key is an error.
 * @param {api.RunMigrationsInput} input
 */
function split({ configPath, progress, flags, ...rest }) {
  const { noLock, lockPollIntervalMs, signal, forceFresh, ...config } = rest
  const lock = { noLock, lockPollIntervalMs, signal, forceFresh }
  return { config, kit: { configPath, progress, flags }, lock }
}

/**
 * @template T
 * @param {Partial<api.MmkConfig>} config
 * @param {api.MigratorKitOptions} options
 * @param {(open: engine.Engine) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withEngine(config, options, work) {
  const open = await engine.openEngine(config, options)
  return closing(
    () => work(open),
    () => open.core.disconnect(),
    open.report,
  )
}
