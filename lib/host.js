/**
 * The JavaScript side of one run: what the core calls to load, connect, run and tell.
 *
 * Promises: none of its functions rejects, they report; a thrown value is kept by identity under its
 * `causeId`; the client that it made is closed by `close`, the user's own never. One host serves one
 * run.
 */
import { isLatest, runBody } from './body.js'
import { createContext } from './context.js'
import { connectDriver } from './driver.js'
import { InvalidArgumentError, isMmkError, LockLostError, MmkError } from './errors.js'
import { fromFailure } from './failure.js'
import { runHook } from './hooks.js'
import { loadMigration, locateFile } from './modules.js'
import { escapeLines } from './text.js'
import { describeOurs, describeThrown } from './thrown.js'

/** @import * as core from './contract.d.ts' */
/** @import { MigrationDefinition, MmkConfig, MmkLogger } from '../index.d.ts' */
/** @import { Connection } from './driver.js' */
/** @import { Causes } from './thrown.js' */

/**
 * @typedef {object} Setting
 * @property {Readonly<MmkConfig>} config
 * @property {MmkLogger | null} logger
 * @property {Causes} causes
 * @property {(event: core.Event) => void} emit
 * @property {boolean} [fresh] load files anew, whatever this process has loaded before
 */

/**
 * @typedef {object} Run
 * @property {Map<string, MigrationDefinition>} migrations
 * @property {AbortController} controller
 * @property {Connection | null} connection
 */

/**
 * @param {Setting} setting
 * @returns {core.Host & { close(): Promise<void> }}
 */
export function createHost(setting) {
  /** @type {Run} */
  const run = { migrations: new Map(), controller: new AbortController(), connection: null }
  return {
    load: (names) => loadAll(names, setting, run),
    connect: ({ appName }) =>
      reported(setting.causes, async () => {
        run.connection = await connectDriver(setting.config, appName, setting.causes)
      }),
    run: (call) => runMigration(call, setting, run),
    hook: (call) => reported(setting.causes, () => callHook(call, setting, run)),
    abort: (reason) => {
      run.controller.abort(fromFailure(reason, setting.causes))
      closeOurs(run).catch(() => {})
    },
    emit: (event) => emitSafely(event, setting),
    close: () => closeOurs(run),
  }
}

/**
 * @param {string[]} names
 * @param {Setting} setting
 * @param {Run} run
 */
async function loadAll(names, { config, causes, fresh }, { migrations }) {
  /** @type {core.ModuleFacts[]} */
  const facts = []
  for (const name of names) {
    try {
      const migration = await loadMigration(await locateFile(config.migrationsDir, name), { fresh })
      migrations.set(name, migration)
      facts.push(factsOf(name, migration))
    } catch (error) {
      facts.push({ ok: false, name, error: hostError(error, causes) })
    }
  }
  return facts
}

/**
 * @param {string} name
 * @param {MigrationDefinition} migration
 * @returns {core.ModuleFacts}
 */
function factsOf(name, { down, useTransaction, description, onInterrupted }) {
  return {
    ok: true,
    name,
    down: down !== undefined,
    useTransaction: useTransaction ?? null,
    description: description || null,
    onInterrupted: onInterrupted ?? null,
  }
}

/**
 * @param {core.BodyCall} call
 * @param {Setting} setting
 * @param {Run} run
 * @returns {Promise<core.BodyReply>}
 */
async function runMigration(call, setting, run) {
  const { name, direction, settle, fence } = call
  const { connection, controller, migrations } = run
  const body = migrations.get(name)?.[direction]
  if (!connection || !body) {
    const error = new MmkError('INTERNAL', `${name} was run before it was loaded and connected`)
    return { outcome: 'threw', durationMs: 0, error: describeOurs(error, setting.causes) }
  }
  return runBody(
    {
      settle,
      fence,
      signal: controller.signal,
      run: (session) => {
        const fencing = fencingFields(call, connection)
        const own = { ...commonFields(setting, run, connection), ...fencing, name, direction }
        const context = createContext(session ? { ...own, session } : own)
        return body(context, connection.client)
      },
    },
    connection,
    setting.causes,
  )
}

/**
 * What lets a body's own transactions fail once a later run has begun.
 * @param {core.BodyCall} call
 * @param {Connection} connection
 */
function fencingFields({ fence, fencingToken }, connection) {
  return {
    fencingToken,
    /** @param {import('mongodb').ClientSession} session */
    fence: async (session) => {
      if (!session?.inTransaction()) {
        throw new InvalidArgumentError('fence() needs a session with a transaction that is open')
      }
      if (fence && !(await isLatest(fence, session, connection))) {
        throw new LockLostError('A later run has begun: this transaction must not commit')
      }
    },
  }
}

/**
 * What bodies and hooks have in common.
 * @param {Setting} setting
 * @param {Run} run
 * @param {Connection} connection
 */
function commonFields({ config, logger }, { controller }, { db, client }) {
  return {
    db,
    client,
    signal: controller.signal,
    log: (/** @type {unknown} */ message) => logger?.info(escapeLines(String(message))),
    ...(config.mongoose ? { mongoose: config.mongoose } : {}),
  }
}

/**
 * @param {core.HookCall} call
 * @param {Setting} setting
 * @param {Run} run
 */
async function callHook(call, setting, run) {
  const { hooks } = setting.config
  if (!hooks?.[call.hook] || !run.connection) return
  const context = createContext(commonFields(setting, run, run.connection))
  await runHook(call, hooks, context, setting.causes)
}

/**
 * @param {Causes} causes
 * @param {() => Promise<unknown>} work
 * @returns {Promise<core.HostReply>}
 */
async function reported(causes, work) {
  try {
    await work()
    return { ok: true }
  } catch (error) {
    return { ok: false, error: hostError(error, causes) }
  }
}

/**
 * @param {unknown} error
 * @param {Causes} causes
 */
function hostError(error, causes) {
  return isMmkError(error) ? describeOurs(error, causes) : describeThrown(error, causes)
}

/**
 * Watchers can't stop a run: what they throw has nowhere to go.
 * @param {core.Event} event
 * @param {Setting} setting
 */
function emitSafely(event, { emit, config }) {
  for (const watcher of [emit, config.onEvent]) {
    try {
      watcher?.(event)
    } catch {
      // Promised in the types of `onEvent`.
    }
  }
}

/** @param {Run} run */
async function closeOurs(run) {
  const { connection } = run
  run.connection = null
  if (connection?.ours) await connection.client.close()
}
