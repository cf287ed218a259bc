/**
 * The JavaScript side of one run: what the core calls to load, connect, run and tell.
 *
 * Promises: none of its functions rejects, they report; a thrown value is kept by identity under its
 * `causeId`; the client that it made is closed by `close`, the user's own never. One host serves one
 * run.
 */
import { runBody } from './body.js'
import { createContext } from './context.js'
import { refuseOtherDeployment } from './deployment.js'
import { connectDriver } from './driver.js'
import { MmkError } from './errors.js'
import { fromFailure } from './failure.js'
import { fencingFields } from './fencing.js'
import { runHook } from './hooks.js'
import { loadAll } from './loading.js'
import { emitSafely, reported } from './reported.js'
import { escapeLines } from './text.js'
import { describeOurs } from './thrown.js'

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
 * @property {() => Promise<core.Server>} [server] what the core's own connection leads to
 * @property {boolean} [fresh] load files anew, whatever this process has loaded before
 */

/**
 * @typedef {object} Run
 * @property {Map<string, MigrationDefinition>} migrations
 * @property {AbortController} controller
 * @property {Connection | null} connection
 * @property {Connection | null} retired
 * @property {string} appName
 */

/**
 * @param {Setting} setting
 * @returns {core.Host & { close(): Promise<void> }}
 */
export function createHost(setting) {
  /** @type {Run} */
  const run = {
    migrations: new Map(),
    controller: new AbortController(),
    connection: null,
    retired: null,
    appName: '',
  }
  return {
    load: (names) => loadAll(names, setting, run.migrations),
    connect: ({ appName }) =>
      reported(setting.causes, async () => {
        const wishes = [...run.migrations.values()].map(({ useTransaction }) => useTransaction)
        const monitored = wishes.some((wish) => wish ?? setting.config.useTransaction)
        run.appName = appName
        run.connection = await connectDriver({ ...setting, appName, monitored })
        const apart = setting.config.lockUri !== undefined || !run.connection.ours
        if (apart && setting.server) await refuseOtherDeployment(run.connection.db, setting.server)
      }),
    run: (call) => runMigration(call, setting, run),
    hook: (call) => reported(setting.causes, () => callHook(call, setting, run)),
    abort: (reason) => {
      run.controller.abort(fromFailure(reason, setting.causes))
      // Who is only told to end may finish what he is about; who has lost the lock may not.
      if (reason.code !== 'RUN_CANCELLED') closeOurs(run).catch(() => {})
    },
    emit: (event) => emitSafely(event, setting),
    close: () => closeOurs(run),
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
  const { config, causes } = setting
  const body = run.migrations.get(name)?.[direction]
  let { connection } = run
  if (!connection || !body) {
    const error = new MmkError('INTERNAL', `${name} was run before it was loaded and connected`)
    return { outcome: 'threw', durationMs: 0, error: describeOurs(error, causes) }
  }
  if (settle !== null && connection.ours && !connection.monitored) {
    const reply = await reported(causes, () => reconnect(setting, run))
    if (!reply.ok) return { outcome: 'threw', durationMs: 0, error: reply.error }
    connection = run.connection ?? connection
  }
  const { client } = connection
  const fields = { ...commonFields(setting, run, connection), ...fencingFields(call, connection) }
  return runBody(
    {
      name,
      settle,
      fence,
      signal: run.controller.signal,
      strict: config.strict,
      retryTimeoutMs: config.transactionRetryTimeoutMs,
      lockCollection: config.lockCollection,
      tell: (event) => emitSafely(event, setting),
      run: (session) => {
        const own = { ...fields, name, direction }
        const context = createContext(session ? { ...own, session } : own)
        return body(context, client)
      },
    },
    connection,
    causes,
  )
}

/**
 * Files may become pending, and be the first to want a transaction, after the connection was made.
 * @param {Setting} setting
 * @param {Run} run
 */
async function reconnect(setting, run) {
  const { connection, appName, controller } = run
  run.connection = await connectDriver({ ...setting, appName, monitored: true })
  // A hook may have kept the first one, so both last as long as the run.
  run.retired = connection
  if (controller.signal.aborted) await closeOurs(run)
  controller.signal.throwIfAborted()
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

/** @param {Run} run */
async function closeOurs(run) {
  const { connection, retired } = run
  run.connection = run.retired = null
  for (const each of [connection, retired]) if (each?.ours) await each.client.close()
}
