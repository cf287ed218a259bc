/**
 * Signals during a run, and a process that ends before its run does.
 *
 * The signals themselves are handled in the core, on a thread of its own: a handler here would not run
 * while a body blocks the event loop. Ours only keep Node from raising the default action, which they
 * do if they are there first, and remember the exit status.
 */

/** @import { Core } from '../core.js' */

const STATUS = Object.freeze({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })

/** What a process that is about to end may still spend on giving the lock back. */
const PATIENCE_MS = 2000

/** @type {Core | null} */
let running = null
/** @type {number | null} */
let status = null

/**
 * From now on the first signal ends the run in good order, and the second at once.
 * @param {Core} core
 * @param {string} [frame] of the JSON document, if one was asked for
 */
export function handOverSignals(core, frame) {
  for (const [signal, code] of Object.entries(STATUS)) {
    process.on(signal, () => {
      status ??= code
    })
  }
  core.commandLine(frame)
  running = core
}

/** Has this process run migrations, or tried to? */
export function ranMigrations() {
  return running !== null
}

/** The exit status that the first signal asks for, once there was one. */
export function signalStatus() {
  return status
}

/** Stops what the run has left on the server, and gives its lock back. Blocks. */
export function abandonRun() {
  running?.abandon(PATIENCE_MS)
}
