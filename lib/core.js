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
    disconnect: () => core.disconnect(),
  }
}

/**
 * @param {contract.Host} host
 * @returns {(kind: string, json: string, bytes: Buffer | null) => Promise<string>}
 */
function dispatcher(host) {
  // A promise that never settles may be collected, and the core would take that for a broken host.
  const pending = new Set()
  return (kind, json, bytes) => {
    const answer = dispatch(host, kind, json, bytes)
    pending.add(answer)
    return answer.finally(() => pending.delete(answer))
  }
}

/**
 * @param {contract.Host} host
 * @param {string} kind
 * @param {string} json
 * @param {Buffer | null} bytes
 * @returns {Promise<string>}
 */
async function dispatch(host, kind, json, bytes) {
  const value = JSON.parse(json)
  switch (kind) {
    case 'run':
      return JSON.stringify(await host.run({ ...value, settle: bytes ?? null }))
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
    throw new DependencyMissingError(
      `The compiled core of mongo-migrate-kit for ${platform} is missing`,
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
 * @template T
 * @param {contract.Reply<T>} reply
 * @param {Causes} causes
 * @returns {T}
 */
export function unwrap(reply, causes) {
  if (reply.ok) return reply.value
  throw fromFailure(reply.error, causes, reply.results)
}
