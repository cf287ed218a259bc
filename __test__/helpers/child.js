/**
 * Other processes: bounded in time, with everything they print kept, and ended with the test.
 */
import { spawn } from 'node:child_process'
import { neutralEnv } from '../../scripts/process.js'

/**
 * @typedef {object} Ended
 * @property {number | null} code
 * @property {NodeJS.Signals | null} signal
 * @property {string} stdout
 * @property {string} stderr
 * @property {number} endedAt `performance.now()` when the process was gone
 *
 * @typedef {object} Child
 * @property {number} pid
 * @property {(signal: NodeJS.Signals) => void} kill
 * @property {() => string} stdout what it has printed so far
 * @property {() => string} stderr
 * @property {Promise<Ended>} ended
 *
 * @typedef {{ cwd?: string, env?: NodeJS.ProcessEnv, timeoutMs?: number }} Options
 */

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Options} [options] `env` is added to a neutral environment; after `timeoutMs` the process
 *   is killed, which shows as `signal: 'SIGKILL'`
 * @returns {Child}
 */
export function start(command, args, { cwd, env = {}, timeoutMs = 60_000 } = {}) {
  const child = spawn(command, args, {
    cwd,
    env: { ...testEnv(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  running.add(child)
  const text = { stdout: '', stderr: '' }
  for (const stream of /** @type {const} */ (['stdout', 'stderr'])) {
    child[stream].setEncoding('utf8').on('data', (chunk) => {
      text[stream] += chunk
    })
  }
  /** @type {Promise<Ended>} */
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      running.delete(child)
      resolve({ code, signal, ...text, endedAt: performance.now() })
    })
  })
  return {
    pid: child.pid ?? 0,
    kill: (signal) => void child.kill(signal),
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    ended,
  }
}

/** Without what the test runner adds for its own children, and without colours. */
export function testEnv() {
  const { NODE_TEST_CONTEXT: _, FORCE_COLOR: __, NODE_OPTIONS: ___, ...env } = neutralEnv()
  return { ...env, NO_COLOR: '1' }
}
