/**
 * The command line's grammar: global flags here, each verb in its own file. It loads neither the
 * driver nor the addon; verbs import what they need when they run.
 */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addCreate } from './commands/create.js'
import { addDown } from './commands/down.js'
import { addDryRun } from './commands/dry-run.js'
import { addImport } from './commands/import.js'
import { addInit } from './commands/init.js'
import { addList } from './commands/list.js'
import { addMark } from './commands/mark.js'
import { addRedo } from './commands/redo.js'
import { addStatus } from './commands/status.js'
import { addUnlock } from './commands/unlock.js'
import { addUp } from './commands/up.js'
import { positiveInteger } from './flags.js'

/** @import { Option } from 'commander' */

/**
 * A verb's work: the common things, its own options, its arguments; resolves to the exit status.
 * @typedef {(cli: import('./main.js').Cli, options: any, ...args: any[]) => Promise<number>} Work
 */

/** @typedef {(work: Work) => (...args: any[]) => Promise<void>} Action */

const EXAMPLES = `
Examples:
  $ mmk init                         write mmk.config.js
  $ mmk create add-user-index        create a migration
  $ mmk up                           apply what is pending
  $ mmk up --wait                    the same, waiting for a run that holds the lock
  $ mmk status                       show what is applied and what is not
  $ mmk down                         revert the last batch`

/**
 * @param {Action} action makes a commander action of a verb's work
 * @returns {Command}
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
    .option('--json', 'print one JSON document on stdout')
    .option('--utc', 'show times in UTC')
    .option('--no-color', 'no colours')
    .option('--verbose', 'show stack traces')
    .helpOption('-h, --help', 'show the usage')
    .helpCommand('help [command]', 'show the usage')
    .configureHelp({ showGlobalOptions: true, optionTerm })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
    .addHelpText('after', EXAMPLES)
  for (const add of VERBS) add(program, action)
  return program
}

/** In the order of the help. */
const VERBS = [
  addInit,
  addCreate,
  addUp,
  addDown,
  addRedo,
  addDryRun,
  addStatus,
  addList,
  addMark,
  addUnlock,
  addImport,
]

/**
 * A value that is only taken after `=` is shown with it.
 * @param {Option} option
 */
function optionTerm(option) {
  return option.flags.replace(' [', '[=')
}

function readVersion() {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return JSON.parse(text).version
}
