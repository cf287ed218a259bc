/**
 * Whole processes and what they cost. A process that fails fails the measurement: the time of an
 * error message is no figure.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { neutralEnv, root } from '../scripts/process.js'

const usage = join(root, 'bench', 'usage.cjs')
const deadlineMs = 120_000

/**
 * @typedef {object} Cost
 * @property {number} wallMs from the spawn until it is gone
 * @property {number} cpuMs user and system, until its exit handlers
 * @property {number} rssMb the most it had in memory
 * @property {string} stdout
 *
 * @param {readonly string[]} args of node
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [options] `env` is added to a neutral one
 * @returns {Promise<Cost>}
 */
export async function measured(args, { cwd = root, env = {} } = {}) {
  const began = performance.now()
  const child = spawn(process.execPath, ['--require', usage, ...args], {
    cwd,
    env: plainEnv(env),
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  })
  /** @type {Promise<{ code: number | null, wallMs: number }>} */
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve({ code, wallMs: performance.now() - began }))
  })
  const used = /** @type {import('node:stream').Readable} */ (child.stdio[3])
  const pipes = /** @type {import('node:stream').Readable[]} */ ([child.stdout, child.stderr, used])
  const texts = Promise.all(pipes.map(text))
  const { code, wallMs } = await ended
  const [stdout = '', stderr = '', told = ''] = await texts
  if (code !== 0) {
    throw new Error(`node ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`)
  }
  return { wallMs, ...JSON.parse(told), stdout }
}

/**
 * Without colours, and without what a test runner or `npm run` leaves for its children.
 *
 * @param {NodeJS.ProcessEnv} added
 * @returns {NodeJS.ProcessEnv}
 */
export function plainEnv(added) {
  const { NODE_TEST_CONTEXT: _, FORCE_COLOR: __, NODE_OPTIONS: ___, ...env } = neutralEnv()
  return { ...env, NO_COLOR: '1', ...added }
}
