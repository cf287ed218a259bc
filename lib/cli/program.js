/**
 * The command line's grammar: global flags here, each verb in its own file, which is loaded when it
 * is asked for. It loads neither the driver nor the addon; verbs import what they need when they run.
 */
import { readFileSync } from 'node:fs'
import { Command, Option } from './commander.js'
import { positiveInteger } from './flags.js'
import { printHelp } from './output.js'

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
 * The grammar without the verbs.
 * @returns {import('commander').Command}
 */
export function createProgram() {
  return new Command('mmk')
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
}

/**
 * @param {import('commander').Command} program is added to
 * @param {Action} action makes a commander action of a verb's work
 * @param {readonly string[]} names
 */
export async function addVerbs(program, action, names) {
  const wanted = Object.entries(VERBS).filter(([name]) => names.includes(name))
  for (const add of await Promise.all(wanted.map(([, load]) => load()))) add(program, action)
}

/** In the order of the help. */
const VERBS = {
  init: async () => (await import('./commands/init.js')).addInit,
  create: async () => (await import('./commands/create.js')).addCreate,
  up: async () => (await import('./commands/up.js')).addUp,
  down: async () => (await import('./commands/down.js')).addDown,
  redo: async () => (await import('./commands/redo.js')).addRedo,
  'dry-run': async () => (await import('./commands/dry-run.js')).addDryRun,
  status: async () => (await import('./commands/status.js')).addStatus,
  list: async () => (await import('./commands/list.js')).addList,
  mark: async () => (await import('./commands/mark.js')).addMark,
  unlock: async () => (await import('./commands/unlock.js')).addUnlock,
  import: async () => (await import('./commands/import.js')).addImport,
  config: async () => (await import('./commands/config.js')).addConfig,
  doctor: async () => (await import('./commands/doctor.js')).addDoctor,
  completion: async () => (await import('./commands/completion.js')).addCompletion,
}

export const VERB_NAMES = Object.keys(VERBS)

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
