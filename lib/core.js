/**
 * The door to the Rust core: the only module that imports the addon, and only when it is needed.
 *
 * Promises: a missing binary is an error that says so; a reply of the core is its value, or the error
 * that its failure stands for.
 */
import { createRequire } from 'node:module'
import { DependencyMissingError } from './errors.js'

/** @import * as contract from './contract.d.ts' */
/** @import { Causes } from './thrown.js' */

/**
 * @typedef {object} Core
 * @property {() => Promise<contract.Reply<contract.Server>>} connect
 * @property {() => Promise<contract.Reply<contract.StatusReport>>} status
 * @property {() => Promise<contract.Reply<contract.Neighbour[]>>} neighbours
 * @property {() => Promise<contract.Reply<contract.Holder | null>>} lock
 * @property {(owner: string | null) => Promise<contract.Reply<contract.Holder | null>>} forceRelease
 * @property {(request: contract.RunRequest, host: contract.Host)
 *   => Promise<contract.Reply<contract.RunReport>>} run
 * @property {(request: contract.RunRequest, host: contract.Host)
 *   => Promise<contract.Reply<contract.StatusRow[]>>} rehearse what `run` would do, in its order
 * @property {(request: contract.ImportRequest, host: contract.Host)
 *   => Promise<contract.Reply<contract.ImportReport>>} import the host only hears events
 * @property {() => void} cancel tells the run that is under way to end
 * @property {(frame?: string) => void} commandLine handles signals off the event loop, and fills the
 *   frame of the JSON document when that is blocked; not for apps
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
  const { Core } = loadAddon()
  const core = new Core(JSON.stringify(settings))
  return {
    connect: async () => JSON.parse(await core.connect()),
    status: async () => JSON.parse(await core.status()),
    neighbours: async () => JSON.parse(await core.neighbours()),
    lock: async () => JSON.parse(await core.lock()),
    forceRelease: async (owner) => JSON.parse(await core.forceRelease(owner)),
    run: async (request, host) =>
      JSON.parse(await core.run(JSON.stringify(request), dispatcher(host))),
    rehearse: async (request, host) =>
      JSON.parse(await core.rehearse(JSON.stringify(request), dispatcher(host))),
    import: async (request, host) =>
      JSON.parse(await core.import(JSON.stringify(request), dispatcher(host))),
    cancel: () => core.cancel(),
    commandLine: (frame) => core.commandLine(frame),
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

const require = createRequire(import.meta.url)

/** @returns {any} */
function loadAddon() {
  try {
    // An import would first search this long file for what it exports.
    return require('./native/index.js')
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

/** The loader tries a few names; a longer chain is a loop. */
const MAX_TRIED = 20

/**
 * The loader looks for a file of a clone first, then for the package of this platform. Of an installed
 * package only the latter says anything: it is missing, or can't be loaded on this system.
 * @param {unknown} error
 */
function reasonOf(error) {
  const messages = []
  for (let tried = error; tried instanceof Error && messages.length < MAX_TRIED; ) {
    messages.push(tried.message.split('\n')[0])
    tried = tried.cause
  }
  const told = messages.slice(1).filter((message) => !message.includes("'./"))
  return told.at(-1) ?? messages.at(-1) ?? String(error)
}

/**
 * @template T
 * @param {contract.Reply<T>} reply
 * @param {Causes} [causes]
 * @returns {Promise<T>}
 */
export async function unwrap(reply, causes) {
  if (reply.ok) return reply.value
  const { fromFailure } = await import('./failure.js')
  throw fromFailure(reply.error, causes, reply.results)
}
