/**
 * Starting workers and hearing from them. They are ended with us, and none lives past its deadline.
 */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../scripts/process.js'
import { plainEnv } from './processes.js'

/** @import { Job, Returned, Waiting } from './worker.js' */

const worker = join(root, 'bench', 'worker.js')
const deadlineMs = 180_000

/**
 * @param {Job} job
 * @param {{ onWaiting?: () => void }} [options]
 * @returns {Promise<Returned[]>} one for each run, in the order of their ends
 */
export function work(job, { onWaiting } = {}) {
  const child = fork(worker, [JSON.stringify(job)], {
    cwd: job.place.folder,
    env: plainEnv({}),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  })
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  /** @type {Returned[]} */
  const returned = []
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  child.on('message', (/** @type {Waiting | Returned} */ message) => {
    if ('waiting' in message) onWaiting?.()
    else returned.push(message)
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      process.off('exit', kill)
      if (code === 0) resolve(returned)
      else reject(new Error(`a worker (${JSON.stringify(job)}) ended with ${code}:\n${stderr}`))
    })
  })
}

/**
 * @param {Job} job of a single run
 * @returns {Promise<Returned>}
 */
export async function workOnce(job) {
  const [only] = await work(job)
  if (!only) throw new Error(`a worker (${JSON.stringify(job)}) has not answered`)
  return only
}
