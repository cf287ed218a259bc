/**
 * The host of a run that may find nothing to do: what runs bodies, a third of this package, is loaded
 * with the first call that needs it. Events are told without it.
 */
import { emitSafely } from './reported.js'

/** @import { Setting } from './host.js' */

/**
 * @param {Setting} setting
 * @returns {ReturnType<typeof import('./host.js').createHost>}
 */
export function lateHost(setting) {
  /** @type {Promise<ReturnType<typeof lateHost>> | null} */
  let opened = null
  const open = () => {
    opened ??= import('./host.js').then(({ createHost }) => createHost(setting))
    return opened
  }
  return {
    load: async (names) => (await open()).load(names),
    connect: async (call) => (await open()).connect(call),
    run: async (call) => (await open()).run(call),
    hook: async (call) => (await open()).hook(call),
    // What can't be loaded has nothing to abort, and the call that needed it has failed.
    abort: (reason) =>
      void open().then(
        ({ abort }) => abort(reason),
        () => {},
      ),
    emit: (event) => emitSafely(event, setting),
    close: async () => (await opened)?.close(),
  }
}
