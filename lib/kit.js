/**
 * The public handle: the commands of the CLI as methods.
 *
 * It connects by itself on first use and holds what it opened until `disconnect`. What an app's start
 * never asks for is loaded by the method that needs it.
 */
import { resolveConfig } from './config/index.js'
import { showValue } from './config/problems.js'
import * as engine from './engine.js'
import { InvalidArgumentError } from './errors.js'
import { lockInfo, runResult, statusRow } from './shapes.js'

/** @import * as api from '../index.d.ts' */
/** @import { RunRequest } from './contract.d.ts' */

const FILTERS = ['all', 'pending', 'applied']

/** @implements {api.MigratorKit} */
export class MigratorKit {
  /** @type {Partial<api.MmkConfig>} */
  #argument
  /** @type {engine.KitOptions} */
  #options
  /** @type {Promise<engine.Engine> | null} */
  #engine = null
  /** @type {string | null} */
  configFile = null
  /** @type {string | null} */
  namespace = null

  /**
   * @param {Partial<api.MmkConfig>} [config]
   * @param {engine.KitOptions} [options]
   */
  constructor(config = {}, options = {}) {
    this.#argument = config
    this.#options = options
  }

  async connect() {
    await engine.connect(await this.#open())
  }

  async disconnect() {
    const opened = this.#engine
    this.#engine = null
    const { core } = (await opened?.catch(() => null)) ?? {}
    await core?.disconnect()
  }

  /**
   * @param {string} [file]
   * @param {api.UpOptions} [options]
   */
  async up(file, options = {}) {
    return this.#run(({ upRequest }, config) => upRequest(file, options, config), options.signal)
  }

  /**
   * @param {string} [file]
   * @param {api.DownOptions} [options]
   */
  async down(file, options = {}) {
    return this.#run(
      ({ downRequest }, config) => downRequest(file, options, config),
      options.signal,
    )
  }

  /** @param {string} [file] */
  async redo(file) {
    return this.#run(({ redoRequest }, config) => redoRequest(file, config))
  }

  /**
   * @param {'up' | 'down'} direction
   * @param {string} [file]
   * @param {api.DryRunOptions} [options]
   */
  async dryRun(direction, file, options = {}) {
    const open = await this.#open()
    const { dryRunRequest } = await import('./requests.js')
    const { rehearse } = await import('./running.js')
    const request = dryRunRequest(direction, file, options, open.resolved.config)
    return (await rehearse(open, request)).map(statusRow)
  }

  /**
   * @param {string} file
   * @param {'applied' | 'pending'} state
   * @param {api.MarkOptions} [options]
   */
  async mark(file, state, options = {}) {
    const [marked] = await this.#run(({ markRequest }, config) => {
      return markRequest(file, state, options, config)
    })
    return marked
  }

  /** @param {api.ImportOptions} [options] */
  async import(options) {
    const { importHistory } = await import('./import.js')
    return importHistory(await this.#open(), options)
  }

  /** @param {api.StatusOptions} [options] */
  async status(options) {
    const rows = await engine.status(await this.#open(), options)
    return rows.map(statusRow)
  }

  /** @param {'all' | 'pending' | 'applied'} [filter] */
  async list(filter = 'all') {
    if (!FILTERS.includes(filter)) {
      throw new InvalidArgumentError(`\`list\` takes ${FILTERS.join(', ')}, not "${filter}"`, {
        context: { filter },
      })
    }
    const rows = await this.status()
    return filter === 'all' ? rows : rows.filter((row) => row.status === filter)
  }

  async lockInfo() {
    const holder = await engine.lock(await this.#open())
    return holder && lockInfo(holder)
  }

  /** @param {api.ForceUnlockOptions} [options] */
  async forceUnlock({ owner } = {}) {
    if (owner !== undefined && owner !== null && typeof owner !== 'string') {
      throw new InvalidArgumentError(`\`owner\` must be a text, not ${showValue(owner)}`)
    }
    const open = await this.#open()
    const shown = owner === undefined ? await engine.lock(open) : { owner }
    const removed = shown && (await engine.forceRelease(open, shown.owner))
    return removed && lockInfo(removed)
  }

  /**
   * @param {string} name
   * @param {api.CreateOptions} [options]
   */
  async create(name, options) {
    const { config, configFile } = await resolveConfig({
      argument: this.#argument,
      flags: this.#options.flags,
      configPath: this.#options.configPath,
      connects: false,
    })
    this.configFile = configFile
    const { createMigration } = await import('./create.js')
    return createMigration(config, name, options)
  }

  /** @param {api.InitOptions} [options] */
  async init(options) {
    const { uri, dbName, migrationsDir } = { ...this.#argument, ...this.#options.flags }
    const { initConfig } = await import('./init.js')
    return initConfig({ uri, dbName, migrationsDir, ...options })
  }

  /**
   * @param {(requests: typeof import('./requests.js'), config: Readonly<api.MmkConfig>) =>
   *   RunRequest} request
   * @param {AbortSignal} [signal]
   */
  async #run(request, signal) {
    const open = await this.#open()
    const requests = await import('./requests.js')
    const { run } = await import('./running.js')
    const report = await run(open, request(requests, open.resolved.config), signal)
    return report.results.map(runResult)
  }

  async #open() {
    this.#engine ??= engine.openEngine(this.#argument, this.#options)
    try {
      const open = await this.#engine
      this.configFile = open.resolved.configFile
      this.namespace = open.resolved.config.namespace ?? null
      return open
    } catch (error) {
      this.#engine = null
      throw error
    }
  }
}
