/**
 * Carries out the command that was asked for, or says why not, and sets `process.exitCode`.
 *
 * It lets the process end by itself, so what was written is flushed; only what migrations have left
 * open it ends. Bare `mmk`, which has printed the help, is a usage error.
 */

import { InvalidArgumentError, MigrationExecutionFailedError, MmkError } from '../errors.js'
import { escapeText } from '../text.js'
import { EXIT, exitStatus } from './exit.js'
import { failureText } from './failure.js'
import { printError, printJsonFailure } from './output.js'
import { abandonRun, ranMigrations, signalStatus } from './signals.js'
import { spinnerProgress } from './spinner.js'

/** @import { Command, CommanderError } from 'commander' */
/** @import { Documents } from './document.js' */
/** @import { Globals } from './flags.js' */

/**
 * A command line that was understood: the verb, what it was given, and the grammar.
 * @typedef {{
 *   verb: string
 *   args: any[]
 *   options: any
 *   globals: Globals
 *   program: Command
 * }} Asked
 */

/**
 * How to tell what happens.
 * @typedef {{ documents: Documents | null, utc: boolean, verbose: boolean }} Told
 */

/**
 * What every command gets. `json`: in whatever form; `documents` then makes the one document.
 * `runs`: it runs migrations.
 * @typedef {{
 *   globals: Globals
 *   program: Command
 *   json: boolean
 *   documents: Documents | null
 *   progress: import('./spinner.js').Progress
 *   runs?: boolean
 * }} Cli
 */

/**
 * A verb's work: the common things, its own options, its arguments; resolves to the exit status.
 * @typedef {(cli: Cli, options: any, ...args: any[]) => Promise<number>} Work
 */

/** Commander's code for a help that was printed because no command was named. */
const BARE = 'commander.help'
/** What is still open so long after a run isn't about to close. */
const LEFT_OPEN_MS = 1000

/**
 * @param {Asked} asked
 * @param {Told} told
 */
export async function perform({ verb, args, options, globals, program }, told) {
  const { documents } = told
  const cli = { globals, program, json: documents !== null, documents, progress: spinnerProgress() }
  const settled = watchEarlyExit(cli.progress, told)
  let unsettled = false
  /** @type {number} */
  let status
  try {
    /** @type {{ run: Work }} */
    const { run } = await import(`./commands/${verb}.js`)
    status = await run(cli, options, ...args)
  } catch (error) {
    report(error, told)
    status = exitStatus(error)
    unsettled = error instanceof MmkError && error.context.settled === false
  }
  settled()
  process.exitCode = signalStatus() ?? status
  // A body that did not end when it was told to would keep the process alive.
  if (unsettled) process.exit()
  // So would the server or the pool of an app that a migration has imported, or a dead connection.
  if (ranMigrations()) setTimeout(() => process.exit(), LEFT_OPEN_MS).unref()
}

/**
 * @param {CommanderError} mistake in the command line
 * @param {Told} told
 */
export function refuse({ code, message }, told) {
  process.exitCode = EXIT.usage
  if (code === BARE && told.documents === null) return
  const said = message.replace(/^error: /, '').replaceAll('\n', ' ')
  const error = new InvalidArgumentError(code === BARE ? 'no command was given' : said, {
    hint: '`mmk --help`, or `mmk <command> --help`, shows the usage',
  })
  report(error, told)
}

/**
 * @param {unknown} error
 * @param {Told} told
 */
function report(error, { utc, verbose }) {
  printJsonFailure(error)
  printError(failureText(error, { utc, verbose }))
}

/**
 * A body that calls `process.exit()` must not look like success to a pipeline.
 * @param {import('./spinner.js').Progress} progress
 * @param {Told} told
 * @returns {() => void} call it when the command has settled
 */
function watchEarlyExit(progress, told) {
  const onExit = () => {
    abandonRun()
    const who = progress.running === null ? 'something' : escapeText(progress.running)
    process.exitCode = process.exitCode || EXIT.failed
    const error = new MigrationExecutionFailedError(
      `${who} ended the process before the command was done`,
      { hint: '`mmk status` shows what was applied, and what was interrupted' },
    )
    report(error, told)
  }
  process.on('exit', onExit)
  return () => process.off('exit', onExit)
}
