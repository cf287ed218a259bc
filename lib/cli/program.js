/** The command line's grammar: the global flags here, the verbs in `verbs.js`. It only reads. */
import { readFileSync } from 'node:fs'
import { Command, Option } from './commander.js'
import { printHelp } from './output.js'
import { addVerbs, positiveInteger } from './verbs.js'

const EXAMPLES = `
Examples:
  $ mmk init                         write mmk.config.js
  $ mmk create add-user-index        create a migration
  $ mmk up                           apply what is pending
  $ mmk up --wait                    the same, waiting for a run that holds the lock
  $ mmk status                       show what is applied and what is not
  $ mmk down                         revert the last batch`

/**
 * @param {import('./verbs.js').Action} action
 * @returns {import('commander').Command}
 */
export function createProgram(action) {
  const program = new Command('mmk')
    .description('MongoDB migrations with a lock that holds')
    .version(readVersion(), '-V, --version', 'print the version')
    .option('--uri <uri>', 'MongoDB connection string')
    .option('--db <name>', 'database')
    .option('--dir <path>', 'migrations directory')
    .option('--config <path>', 'config file, instead of mmk.config.* here')
    .option('--namespace <name>', 'whose migrations these are, in a shared database')
    .option('--lock-ttl <seconds>', 'how long a crashed run keeps the lock', positiveInteger)
    .addOption(
      new Option('--json [version]', 'print one JSON document on stdout').choices(['1', '2']),
    )
    .option('--json-lines', 'print events as they happen, then that document, one a line')
    .option('--utc', 'show times in UTC')
    .option('--no-color', 'no colours')
    .option('--verbose', 'show stack traces')
    .helpOption('-h, --help', 'show the usage')
    .helpCommand('help [command]', 'show the usage')
    .configureHelp({ showGlobalOptions: true, optionTerm })
    .configureOutput({ outputError: () => {}, writeOut: printHelp })
    .exitOverride()
    .addHelpText('after', EXAMPLES)
  addVerbs(program, action)
  return program
}

/**
 * A value that is only taken after `=` is shown with it.
 * @param {import('commander').Option} option
 */
function optionTerm(option) {
  return option.flags.replace(' [', '[=')
}

function readVersion() {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return JSON.parse(text).version
}
