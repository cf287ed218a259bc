/**
 * The door to the Rust core: the only module that imports the addon, and only when it is needed.
 *
 * Promises: a missing binary is an error that says so; a reply of the core is its value, or the error
 * that its failure stands for.
 */
import { DependencyMissingError } from './errors.js'
import { fromFailure } from './failure.js'

/** @import * as contract from './contract.d.ts' */
/** @import { Causes } from './thrown.js' */

/**
 * @typedef {object} Core
 * @property {() => Promise<contract.Reply<{ transactions: boolean }>>} connect
 * @property {() => Promise<contract.Reply<contract.StatusReport>>} status
 * @property {() => Promise<contract.Reply<contract.Holder | null>>} lock
 * @property {(owner: string | null) => Promise<contract.Reply<contract.Holder | null>>} forceRelease
 * @property {(request: contract.RunRequest, host: contract.Host)
 *   => Promise<contract.Reply<contract.RunReport>>} run
 * @property {(request: contract.RunRequest, host: contract.Host)
 *   => Promise<contract.Reply<contract.StatusRow[]>>} rehearse what `run` would do, in its order
 * @property {(request: contract.ImportRequest, host: contract.Host)
 *   => Promise<contract.Reply<contract.ImportReport>>} import the host only hears events
 * @property {() => void} cancel tells the run that is under way to end
 * @property {(json: boolean) => void} commandLine handles signals off the event loop; not for apps
 * @property {(patienceMs: number) => void} abandon gives the lock back before the process ends; blocks
 * @property {() => Promise<void>} disconnect
 */

/**
 * Everything crosses the binding as JSON text (commands for a transaction as BSON bytes), through
 * one function, so that calls and events keep their order.
 *
 * @param {contract.Settings} settings
 * @returns {Promise<Core>}
 */
export async function openCore(settings) {
  const { Core } = await loadAddon()
  const core = new Core(JSON.stringify(settings))
  return {
    connect: async () => JSON.parse(await core.connect()),
    status: async () => JSON.parse(await core.status()),
    lock: async () => JSON.parse(await core.lock()),
    forceRelease: async (owner) => JSON.parse(await core.forceRelease(owner)),
    run: async (request, host) =>
      JSON.parse(await core.run(JSON.stringify(request), dispatcher(host))),
    rehearse: async (request, host) =>
      JSON.parse(await core.rehearse(JSON.stringify(request), dispatcher(host))),
    import: async (request, host) =>
      JSON.parse(await core.import(JSON.stringify(request), dispatcher(host))),
    cancel: () => core.cancel(),
    commandLine: (json) => core.commandLine(json),
    abandon: (patienceMs) => core.abandon(patienceMs),
    disconnect: () => core.disconnect(),
  }
}

/** @typedef {[settle?: Buffer | null, fence?: Buffer | null]} Commands */

/**
 * @param {contract.Host} host
 * @returns {(kind: string, json: string, ...commands: Commands) => Promise<string>}
 */
function dispatcher(host) {
  // A promise that never settles may be collected, and the core would take that for a broken host.
  const pending = new Set()
  return (kind, json, ...commands) => {
    const answer = dispatch(host, kind, json, commands)
    pending.add(answer)
    return answer.finally(() => pending.delete(answer))
  }
}

/**
 * @param {contract.Host} host
 * @param {string} kind
 * @param {string} json
 * @param {Commands} commands
 * @returns {Promise<string>}
 */
async function dispatch(host, kind, json, [settle = null, fence = null]) {
  const value = JSON.parse(json)
  switch (kind) {
    case 'run':
      return JSON.stringify(await host.run({ ...value, settle, fence }))
    case 'load':
      return JSON.stringify(await host.load(value))
    case 'connect':
      return JSON.stringify(await host.connect(value))
    case 'hook':
      return JSON.stringify(await host.hook(value))
    case 'abort':
      host.abort(value)
      return 'null'
    case 'emit':
      host.emit(value)
      return 'null'
    case 'flush':
      return 'null'
    default:
      throw new TypeError(`the core called an unknown function: ${kind}`)
  }
}

/** @returns {Promise<any>} */
async function loadAddon() {
  try {
    return await import('./native/index.js')
  } catch (error) {
    const platform = `${process.platform}-${process.arch}`
    const reason = reasonOf(error)
    throw new DependencyMissingError(
      `The compiled core of mongo-migrate-kit for ${platform} can't be loaded: ${reason}`,
      {
        context: { package: 'mongo-migrate-kit', platform },
        hint:
          'Install again without --omit=optional, and with a lock file that was made for this ' +
          'platform; in a clone of the repository: npm run build',
        cause: error,
      },
    )
  }
}

/**
 * The loader tries one name after the other; the last thing it met says most.
 * @param {unknown} error
 */
function reasonOf(error) {
  let innermost = error
  while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause
  const message = innermost instanceof Error ? innermost.message : String(innermost)
  return message.split('\n')[0]
}

/**
 * @template T
 * @param {contract.Reply<T>} reply
 * @param {Causes} causes
 * @returns {T}
 */
export function unwrap(reply, causes) {
  if (reply.ok) return reply.value
  throw fromFailure(reply.error, causes, reply.results)
}
