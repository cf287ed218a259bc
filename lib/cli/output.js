/**
 * Where the CLI's words go: results to stdout, everything else to stderr.
 *
 * With JSON asked for, stdout belongs to one document (and the events before it). `claimStdout` then
 * sends whatever else is written there (our log lines, a body's `console.log`) to stderr. It can't
 * reach what is written to the descriptor itself, by a child process or `fs.writeSync(1)`.
 */
import { createColors, wantsColor } from '../colors.js'

/** @import { Event } from '../contract.d.ts' */
/** @import { Documents } from './document.js' */

const writeStdout = process.stdout.write.bind(process.stdout)

/** @type {Documents | null} */
let documents = null
/** Was the one document printed? What goes wrong after it is told on stderr only. */
let told = false

/**
 * From now on `process.stdout.write` writes to stderr; `printResult` still reaches stdout.
 * @param {Documents} made makes the one document
 */
export function claimStdout(made) {
  documents = made
  process.stdout.write = process.stderr.write.bind(process.stderr)
}

/**
 * Output that can't be written ends no run. That a reader went away (`mmk status | head`) is no fault; a
 * full disk is told on stderr, and in the exit status.
 */
export function surviveOutputErrors() {
  let warned = false
  process.stdout.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
    if (error.code === 'EPIPE' || warned) return
    warned = true
    printWarning(`⚠ Standard output can't be written: ${error.message}`)
    // As of a failure; the statuses are not loaded for a help that nobody can write.
    process.once('exit', (code) => {
      process.exitCode = code || 1
    })
  })
  process.stderr.on('error', () => {})
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
 * The one document of a command, in the form that was asked for.
 * @param {unknown} document as 1.x has it
 * @param {Record<string, unknown>} [fields] the same for `--json=2`, where that is neither a list of
 *   migrations nor these very fields
 */
export function printJson(document, fields) {
  if (documents) printOnce(documents.success(document, fields))
}

/** @param {string} text the help or the version, when it was asked for */
export function printHelp(text) {
  if (documents) printJson({ text: text.trimEnd() })
  else writeStdout(text)
}

/** @param {unknown} error */
export function printJsonFailure(error) {
  if (documents) printOnce(documents.failure(error))
}

/** @param {string} text */
function printOnce(text) {
  if (!told) printResult(text)
  told = true
}

/** @param {Event} event remembered for the document and, with `--json-lines`, a line of its own */
export function observe(event) {
  const line = documents?.observe(event)
  if (line && !told) printResult(line)
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
  return createColors(wantsColor(process.stdout))
}

/** Colours for stderr, or functions that add none. */
export function stderrColors() {
  return createColors(wantsColor(process.stderr))
}

/** @returns {number | undefined} none where lines may be as long as they like */
export function terminalWidth() {
  return (process.stdout.isTTY && process.stdout.columns) || undefined
}

/** May we ask? Both the answer and the question need a terminal, or we would wait for ever. */
export function canAsk() {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}
