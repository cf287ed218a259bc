/**
 * Runs one command line: parses it, runs the verb, reports a failure, sets `process.exitCode`.
 *
 * It lets the process end by itself, so what was written is flushed; only what migrations have left
 * open it ends. Bare `mmk` prints the help and is a usage error.
 */
import { CommanderError } from 'commander'
import { InvalidArgumentError, MigrationExecutionFailedError, MmkError } from '../errors.js'
import { escapeText } from '../text.js'
import { EXIT, exitStatus } from './exit.js'
import { failureDocument, failureText } from './failure.js'
import { claimStdout, ignoreBrokenPipes, printError, printJson } from './output.js'
import { createProgram } from './program.js'
import { abandonRun, ranMigrations, signalStatus } from './signals.js'
import { spinnerProgress } from './spinner.js'

/** Commander's code for a help that was printed because no command was named. */
const BARE = 'commander.help'
/** What is still open so long after a run isn't about to close. */
const LEFT_OPEN_MS = 1000

/**
 * What every command gets. `runs`: it runs migrations.
 * @typedef {{
 *   globals: Globals
 *   json: boolean
 *   progress: import('./spinner.js').Progress
 *   runs?: boolean
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
  const { status, unsettled } = await runCommand(argv, { json, progress, report })
  settled()
  process.exitCode = signalStatus() ?? status
  // A body that did not end when it was told to would keep the process alive.
  if (unsettled) process.exit()
  // So would the server or the pool of an app that a migration has imported, or a dead connection.
  if (ranMigrations()) setTimeout(() => process.exit(), LEFT_OPEN_MS).unref()
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
 * @returns {Promise<{ status: number, unsettled?: boolean }>}
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
    return { status }
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      report(error)
      return { status: exitStatus(error), unsettled: isUnsettled(error) }
    }
    // Help or the version was asked for, and printed.
    if (error.exitCode === 0) return { status: EXIT.ok }
    if (error.code !== BARE || json) report(usageError(error))
    return { status: EXIT.usage }
  }
}

/** @param {unknown} error */
function isUnsettled(error) {
  return error instanceof MmkError && error.context.settled === false
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
    abandonRun()
    const who = progress.running === null ? 'something' : escapeText(progress.running)
    process.exitCode = process.exitCode || EXIT.failed
    report(
      new MigrationExecutionFailedError(`${who} ended the process before the command was done`, {
        hint: '`mmk status` shows what was applied, and what was interrupted',
      }),
    )
  }
  process.on('exit', onExit)
  return () => process.off('exit', onExit)
}
