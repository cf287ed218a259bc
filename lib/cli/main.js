/**
 * Runs one command line: parses it, runs the verb, reports a failure, sets `process.exitCode`.
 *
 * It lets the process end by itself, so what was written is flushed; only what migrations have left
 * open it ends. Bare `mmk` prints the help and is a usage error.
 */

import { InvalidArgumentError, MigrationExecutionFailedError, MmkError } from '../errors.js'
import { escapeText } from '../text.js'
import { CommanderError } from './commander.js'
import { EXIT, exitStatus } from './exit.js'
import { failureText } from './failure.js'
import { findVerb, flagWords, neededVerbs, readForm, withBareJson } from './form.js'
import { claimStdout, ignoreBrokenPipes, printError, printJsonFailure } from './output.js'
import { addVerbs, createProgram, VERB_NAMES } from './program.js'
import { abandonRun, ranMigrations, signalStatus } from './signals.js'
import { spinnerProgress } from './spinner.js'

/** @typedef {import('commander').CommanderError} Mistake */

/** Commander's code for a help that was printed because no command was named. */
const BARE = 'commander.help'
/** What is still open so long after a run isn't about to close. */
const LEFT_OPEN_MS = 1000

/**
 * What every command gets. `json`: in whatever form; `documents` then makes the one document.
 * `runs`: it runs migrations.
 * @typedef {{
 *   globals: Globals
 *   json: boolean
 *   documents: import('./document.js').Documents | null
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
 *   json?: '1' | '2'
 *   jsonLines?: boolean
 *   verbose?: boolean
 *   utc?: boolean
 * }} Globals
 */

/**
 * @param {string[]} argv as in `process.argv`
 * @returns {Promise<void>}
 */
export async function main(argv) {
  const typed = withBareJson(argv.slice(2))
  const words = flagWords(typed)
  if (words.includes('--no-color')) forbidColor()
  /** @type {Promise<number>} */
  let work = Promise.resolve(EXIT.ok)
  /** @type {Omit<Cli, 'globals'>} */
  const common = { json: false, documents: null, progress: spinnerProgress() }
  /** @type {import('./program.js').Action} */
  const action =
    (verb) =>
    async (...args) => {
      const globals = args.at(-1).optsWithGlobals()
      work = verb({ ...common, globals }, args.at(-2), ...args.slice(0, -2))
      await work
    }
  const program = createProgram()
  await addVerbs(program, action, neededVerbs(program, VERB_NAMES, words))
  const verb = findVerb(program, VERB_NAMES, words)
  const form = readForm(words, verb)
  if (form !== null) {
    const { createDocuments } = await import('./document.js')
    common.documents = createDocuments(form, verb)
    common.json = true
    claimStdout(common.documents)
  }
  ignoreBrokenPipes()
  const report = createReport(words)
  const settled = watchEarlyExit(common.progress, report)
  const { status, unsettled } = await runCommand(
    () => program.parseAsync(typed, { from: 'user' }).then(() => work),
    (error) => (form === null && error.code === BARE ? undefined : report(usageError(error))),
    report,
  )
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
 * @param {readonly string[]} words
 * @returns {(error: unknown) => void}
 */
function createReport(words) {
  const options = { utc: words.includes('--utc'), verbose: words.includes('--verbose') }
  return (error) => {
    printJsonFailure(error)
    printError(failureText(error, options))
  }
}

/**
 * @param {() => Promise<number>} run
 * @param {(error: Mistake) => void} reportUsage
 * @param {(error: unknown) => void} report
 * @returns {Promise<{ status: number, unsettled?: boolean }>}
 */
async function runCommand(run, reportUsage, report) {
  try {
    return { status: await run() }
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      report(error)
      return { status: exitStatus(error), unsettled: isUnsettled(error) }
    }
    // Help or the version was asked for, and printed.
    if (error.exitCode === 0) return { status: EXIT.ok }
    reportUsage(error)
    return { status: EXIT.usage }
  }
}

/** @param {unknown} error */
function isUnsettled(error) {
  return error instanceof MmkError && error.context.settled === false
}

/**
 * A mistake in the command line as one of our errors.
 * @param {Mistake} error
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
