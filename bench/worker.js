/**
 * A process that uses a tool as an app does: `node bench/worker.js <job as JSON>`, with its answers
 * as messages to the parent.
 *
 * The driver is loaded before the clock starts: an app that needs migrations uses MongoDB anyway.
 */
import 'mongodb'
import { peakMb } from './peak.cjs'
import { load } from './tools.js'

/**
 * @typedef {object} Job
 * @property {import('./tools.js').ToolId} tool
 * @property {import('./tools.js').Place} place
 * @property {number} [runs] how many runs at once, 1 by default
 * @property {import('./tools.js').Running} [how]
 *
 * @typedef {{ waiting: true }} Waiting the lock is held, one run more waits
 * @typedef {object} Returned one run more is over
 * @property {number} returned how many migrations it has applied
 * @property {number} at ms since the epoch, to a fraction
 * @property {number} tookMs from the import of the tool to the end of the run
 * @property {number} cpuMs user and system, as long as that
 * @property {number} rssMb the process's peak so far
 */

/** @type {Job} */
const job = JSON.parse(process.argv[2] ?? '{}')
/** @param {Waiting | Returned} message */
const tell = (message) => process.send?.(message)

const began = performance.now()
const usedBefore = process.cpuUsage()
const run = await load(job.tool)
const how = { ...job.how, onWaiting: () => tell({ waiting: true }) }

async function once() {
  const returned = await run(job.place, how)
  const now = performance.now()
  const { user, system } = process.cpuUsage(usedBefore)
  const cost = { tookMs: now - began, cpuMs: (user + system) / 1000, rssMb: peakMb() }
  tell({ returned, at: performance.timeOrigin + now, ...cost })
}

await Promise.all(Array.from({ length: job.runs ?? 1 }, once))
process.disconnect?.()
