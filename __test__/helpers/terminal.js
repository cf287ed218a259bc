/**
 * `mmk` on a terminal: what it prints where it may draw, ask and use colours.
 *
 * A pseudo-terminal is what neither Node nor npm has without compiling something, and every Python has:
 * so Python 3 is needed (scripts/setup.js says so before any test runs).
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../../scripts/process.js'
import { findPython3 } from '../../scripts/python.js'
import { testEnv } from './child.js'

const SECONDS = 60

/**
 * @typedef {object} OnTerminal
 * @property {string} text all that was shown, with line ends as `\n`; stdout and stderr are one there
 * @property {number | null} code
 * @property {number | null} signal
 */

/**
 * @param {readonly string[]} args
 * @param {{
 *   cwd: string
 *   env?: NodeJS.ProcessEnv
 *   columns?: number
 *   answers?: [shown: string, typed: string][]
 * }} options `answers`: what has to appear, and what is typed then, one after the other
 * @returns {Promise<OnTerminal>}
 */
export async function mmkOnTerminal(args, { cwd, env = {}, columns = 100, answers = [] }) {
  const { NO_COLOR: _, CI: __, ...plain } = /** @type {NodeJS.ProcessEnv} */ (testEnv())
  const job = {
    argv: [process.execPath, join(root, 'bin', 'mmk.js'), ...args],
    cwd,
    env: { ...plain, TERM: 'xterm-256color', ...env },
    columns,
    answers,
    seconds: SECONDS,
  }
  const end = JSON.parse(await runPython(join(import.meta.dirname, 'terminal.py'), job))
  return { ...end, text: end.text.replaceAll('\r\n', '\n') }
}

/**
 * @param {string} script
 * @param {object} job
 * @returns {Promise<string>}
 */
async function runPython(script, job) {
  const python = await findPython3()
  if (!python) throw new Error('No Python 3 found, with whose `pty` module a terminal is made')
  return new Promise((resolve, reject) => {
    const child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    child.once('error', reject)
    child.once('close', (code) => {
      code === 0 ? resolve(text) : reject(new Error(`${script} ended with ${code}`))
    })
    child.stdin.end(JSON.stringify(job))
  })
}
