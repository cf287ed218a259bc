/**
 * Where the CLI's words go: results to stdout, everything else to stderr.
 *
 * Under `--json` stdout belongs to one document. `claimStdout` then sends whatever else is written
 * there (our log lines, a body's `console.log`) to stderr. It can't reach what a child process writes
 * to an inherited descriptor.
 */
import picocolors from 'picocolors'
import { wantsColor } from '../logger.js'

const writeStdout = process.stdout.write.bind(process.stdout)

/** From now on `process.stdout.write` writes to stderr; `printResult` still reaches stdout. */
export function claimStdout() {
  process.stdout.write = process.stderr.write.bind(process.stderr)
}

/** A reader that went away (`mmk status | head`) is no reason for a stack trace. */
export function ignoreBrokenPipes() {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error) => {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EPIPE') throw error
    })
  }
}

/** @param {string} text */
export function printResult(text) {
  writeStdout(`${text}\n`)
}

/**
 * A line of context beside the result: stdout as in 1.x, stderr once stdout is claimed.
 * @param {string} text
 */
export function printLog(text) {
  process.stdout.write(`${stdoutColors().dim(text)}\n`)
}

/**
 * The one document of a command under `--json`.
 * @param {unknown} document
 */
export function printJson(document) {
  printResult(JSON.stringify(document, null, 2))
}

/** @param {string} text */
export function printNote(text) {
  process.stderr.write(`${text}\n`)
}

/** @param {string} text */
export function printWarning(text) {
  printNote(stderrColors().yellow(text))
}

/** @param {string} text */
export function printError(text) {
  printNote(stderrColors().red(text))
}

/** Colours for stdout, or functions that add none. */
export function stdoutColors() {
  return picocolors.createColors(wantsColor(process.stdout))
}

/** Colours for stderr, or functions that add none. */
export function stderrColors() {
  return picocolors.createColors(wantsColor(process.stderr))
}

/** May we ask? Both the answer and the question need a terminal, or we would wait for ever. */
export function canAsk() {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}
