/**
 * Runs one command line: parses it, runs the verb, reports a failure, sets `process.exitCode`.
 *
 * It never calls `process.exit`: what was written is flushed, and the process ends when nothing is
 * left to do. Bare `mmk` prints the help and is a usage error.
 */
import { CommanderError } from 'commander'
import { InvalidArgumentError, MigrationExecutionFailedError } from '../errors.js'
import { escapeText } from '../text.js'
import { EXIT, exitStatus } from './exit.js'
import { failureDocument, failureText } from './failure.js'
import { claimStdout, ignoreBrokenPipes, printError, printJson } from './output.js'
import { createProgram } from './program.js'
import { spinnerProgress } from './spinner.js'

/** Commander's code for a help that was printed because no command was named. */
const BARE = 'commander.help'

/**
 * What every command gets.
 * @typedef {{
 *   globals: Globals
 *   json: boolean
 *   progress: import('./spinner.js').Progress
 * }} Cli
 */

/**
 * @typedef {{
 *   uri?: string
 *   db?: string
 *   dir?: string
 *   config?: string
 *   namespace?: string
 *   lockTtl?: number
 *   json?: boolean
 *   verbose?: boolean
 *   utc?: boolean
 * }} Globals
 */

/**
 * @param {string[]} argv as in `process.argv`
 * @returns {Promise<void>}
 */
export async function main(argv) {
  const words = argv.slice(2, argv.includes('--') ? argv.indexOf('--') : undefined)
  const json = words.includes('--json') && words.find((word) => !word.startsWith('-')) !== 'init'
  if (words.includes('--no-color')) forbidColor()
  if (json) claimStdout()
  ignoreBrokenPipes()
  const progress = spinnerProgress()
  const report = createReport({
    json,
    utc: words.includes('--utc'),
    verbose: words.includes('--verbose'),
  })
  const settled = watchEarlyExit(progress, report)
  process.exitCode = await runCommand(argv, { json, progress, report })
  settled()
}

/** For us and for the bodies that we run. */
function forbidColor() {
  process.env.NO_COLOR = '1'
  delete process.env.FORCE_COLOR
}

/**
 * @param {{ json: boolean, utc: boolean, verbose: boolean }} options
 * @returns {(error: unknown) => void}
 */
function createReport({ json, ...options }) {
  return (error) => {
    if (json) printJson(failureDocument(error))
    printError(failureText(error, options))
  }
}

/**
 * @param {string[]} argv
 * @param {Omit<Cli, 'globals'> & { report: (error: unknown) => void }} options
 * @returns {Promise<number>} the exit status
 */
async function runCommand(argv, { json, progress, report }) {
  /** @type {number} */
  let status = EXIT.ok
  const program = createProgram((work) => async (...args) => {
    const command = args.at(-1)
    const cli = { globals: command.optsWithGlobals(), json, progress }
    status = await work(cli, args.at(-2), ...args.slice(0, -2))
  })
  try {
    await program.parseAsync(argv)
    return status
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      report(error)
      return exitStatus(error)
    }
    // Help or the version was asked for, and printed.
    if (error.exitCode === 0) return EXIT.ok
    if (error.code !== BARE || json) report(usageError(error))
    return EXIT.usage
  }
}

/**
 * A mistake in the command line as one of our errors.
 * @param {CommanderError} error
 */
function usageError({ code, message }) {
  const said = message.replace(/^error: /, '').replaceAll('\n', ' ')
  return new InvalidArgumentError(code === BARE ? 'no command was given' : said, {
    hint: '`mmk --help`, or `mmk <command> --help`, shows the usage',
  })
}

/**
 * A body that calls `process.exit()` must not look like success to a pipeline.
 * @param {import('./spinner.js').Progress} progress
 * @param {(error: unknown) => void} report
 * @returns {() => void} call it when the command has settled
 */
function watchEarlyExit(progress, report) {
  const onExit = () => {
    const who = progress.running === null ? 'something' : escapeText(progress.running)
    process.exitCode = process.exitCode || EXIT.failed
    report(
      new MigrationExecutionFailedError(`${who} ended the process before the command was done`, {
        hint: '`mmk status` shows what was applied; a lock left behind frees itself within its TTL',
      }),
    )
  }
  process.on('exit', onExit)
  return () => process.off('exit', onExit)
}
