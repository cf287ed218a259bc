/**
 * Starting other programs, the same way on every platform. Nothing here keeps a child alive after
 * its parent: what is started is either awaited or handed to the caller.
 */
import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository's root. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * A problem that the reader can solve: printed as it is, without a stack.
 */
export class ScriptError extends Error {}

/**
 * Run a program on our own terminal.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<number>} its exit code; 1 when a signal ended it, 127 when it is not installed
 */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options })
    child.once('error', (error) => {
      console.error(`✖ ${command}: ${error.message}`)
      resolve(127)
    })
    child.once('close', (code) => resolve(code ?? 1))
  })
}

/**
 * Run a program and collect what it prints.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>} code 127: not installed
 */
export function capture(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      stdout += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      stderr += text
    })
    child.once('error', (error) => resolve({ code: 127, stdout, stderr: stderr + error.message }))
    child.once('close', (code) => resolve({ code: code ?? 1, stdout, stderr }))
  })
}

/**
 * Run npm. Under `npm run` that is the very npm which runs us; on Windows a bare `npm` is a script
 * that only a shell can start.
 *
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 */
export function npm(args, options = {}) {
  const own = process.env.npm_execpath
  return own?.endsWith('.js')
    ? run(process.execPath, [own, ...args], options)
    : run('npm', args, { shell: process.platform === 'win32', ...options })
}

/**
 * @returns {NodeJS.ProcessEnv} our environment without the settings of `mmk` and without what `npm
 *   run` adds to it: neither may reach the processes that a test or the demo starts
 */
export function neutralEnv() {
  const kept = Object.entries(process.env).filter(([name]) => !/^(MMK|npm)_/.test(name))
  return Object.fromEntries(kept)
}

/**
 * Do something last, however we end: by ourselves or by a signal, which still ends us.
 *
 * @param {() => void} last
 * @returns {() => void} call it when there is nothing left to do
 */
export function endWithUs(last) {
  const fatalSignals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])
  /** @param {NodeJS.Signals} signal */
  const onSignal = (signal) => {
    dismiss()
    last()
    process.kill(process.pid, signal)
  }
  const dismiss = () => {
    process.off('exit', last)
    for (const signal of fatalSignals) process.off(signal, onSignal)
  }
  process.on('exit', last)
  for (const signal of fatalSignals) process.on(signal, onSignal)
  return dismiss
}

/**
 * The body of a script: its failure is printed and becomes the exit code.
 *
 * @param {() => Promise<number | void>} body resolves to the exit code, 0 when it returns nothing
 */
export async function main(body) {
  try {
    process.exitCode = (await body()) ?? 0
  } catch (error) {
    console.error(error instanceof ScriptError ? `✖ ${error.message}` : error)
    process.exitCode = 1
  }
}

/**
 * @param {string} metaUrl a module's `import.meta.url`
 * @returns {boolean} was that module the one given to `node`?
 */
export const isMain = (metaUrl) => process.argv[1] === fileURLToPath(metaUrl)
