/** The grammar of every verb, in the order of the help. What a verb does is in `commands/`. */
import { Argument, Command, InvalidArgumentError as InvalidValue, Option } from './commander.js'

/** @import { Command as Verb } from 'commander' */

/** @typedef {(verb: string) => (...args: any[]) => void} Action */

/** @typedef {(name: string, about: string) => Verb} Add adds a verb */

/** The shells that can complete our command lines. */
const SHELLS = ['bash', 'zsh', 'fish']

/** Of an `up --wait` that sets no time. */
const BARE_WAIT = 'default'

/** @type {[flag: string, about: string]} */
const NO_LOCK = ['--no-lock', 'run without the lock: nothing else may run']

/**
 * @param {import('commander').Command} program is added to
 * @param {Action} action what commander calls when that verb was typed
 */
export function addVerbs(program, action) {
  /** @type {Add} */
  const verb = (name, about) => {
    return namingChoices(program.command(name)).description(about).action(action(name))
  }
  addFiles(verb, program)
  addRuns(verb)
  addRecords(verb)
  addHelpers(verb)
}

/**
 * What writes files.
 * @param {Add} verb
 * @param {import('commander').Command} program
 */
function addFiles(verb, program) {
  verb('init', 'write a config file and make the migrations directory')
    .option('--js', 'write mmk.config.js (the default without a tsconfig.json)')
    .option('--ts', 'write mmk.config.ts (the default with one)')
    .option('--json', 'write mmk.config.json')
    .option('--secret-provider', 'a config that fetches its URI from a secret store')
    .option('--force', 'write over an existing config file')
    .configureHelp({
      visibleGlobalOptions: () => program.options.filter((option) => option.long !== '--json'),
    })

  verb('create', 'create a migration file')
    .argument('<name>', 'what it does, for example add-user-index')
    .addOption(new Option('--js', 'in JavaScript').conflicts('ts'))
    .addOption(new Option('--ts', 'in TypeScript').conflicts('js'))
    .option('--template <path>', 'file to copy')
}

/**
 * What runs bodies, or would.
 * @param {Add} verb
 */
function addRuns(verb) {
  const up = verb('up', 'apply pending migrations')
    .argument('[file]', 'only this one')
    .option('--to <file>', 'apply up to and including this one')
    .option('--wait [ms]', 'wait for the run that holds the lock, at most so long', waitBudget)
    .option(...NO_LOCK)
    .option('--strict', 'refuse when applied files have changed')
    .option('--step', 'a batch for each migration')
    .option('-f, --force', 'apply FILE again although it is applied')
    .option('--force-fresh', 'apply files that another tool has applied')
    .option('-y, --yes', 'do not ask')
    .option('--dry-run', 'show what would be applied, and apply nothing')
  up.parseOptions = (args) => Command.prototype.parseOptions.call(up, withBareWait(args))

  verb('down', 'revert the last batch, or what is named')
    .argument('[file]', 'only this one')
    .option('--to <file>', 'revert what was applied after this one')
    .option('--batch <n>', 'revert this batch', positiveInteger)
    .option('--steps <n>', 'revert the last n', positiveInteger)
    .option(...NO_LOCK)
    .option('-f, --force', 'revert files that have changed since they were applied')
    .option('-y, --yes', 'do not ask')
    .option('--dry-run', 'show what would be reverted, and revert nothing')

  verb('redo', 'revert the latest migration and apply it again').argument(
    '[file]',
    'this one instead',
  )

  verb('dry-run', 'show what up or down would do, and do nothing')
    .addArgument(new Argument('<direction>', 'of the run').choices(['up', 'down']))
    .argument('[file]', 'only this one')
    .option('--to <file>', 'up: through this one; down: what was applied after it')
    .option('--batch <n>', 'down: this batch', positiveInteger)
    .option('--steps <n>', 'down: the last n', positiveInteger)
}

/**
 * What shows and corrects what is recorded.
 * @param {Add} verb
 */
function addRecords(verb) {
  verb('status', 'show the state of every migration').option(
    '--check',
    'exit 1 if any is pending, 4 if any needs a look',
  )

  verb('list', 'list migrations')
    .addOption(new Option('--pending', 'only those to apply').conflicts('applied'))
    .addOption(new Option('--applied', 'only those applied').conflicts('pending'))

  verb('mark', 'record by hand what is true of a migration')
    .argument('<file>', 'the migration')
    .addOption(
      new Option('--applied', 'it is done, and its file is right as it is now').conflicts(
        'pending',
      ),
    )
    .option('--pending', 'it is not done, or is undone')
    .option('--reason <text>', 'why, for whoever reads the changelog later')

  verb('unlock', 'show who holds the lock, and release it')
    .option('-y, --yes', 'release it without asking')
    .option('--force', 'the same as --yes')

  verb('import', "take over another tool's history")
    .option('--from <collection>', "the collection to read (default: the tool's, or changelog)")
    .option('--to <collection>', 'the collection to write (default: the configured one)')
    .option('--tool <name>', 'who wrote it (default: seen by its documents)')
    .option('--dry-run', 'only show what would be written')
    .option('--trust-hash', 'keep the recorded checksums of files that have changed')
    .option('--skip-missing', 'leave out migrations whose file is not here')
    .option('--force', 'import beside a history that did not come from there')
    .option(...NO_LOCK)
}

/**
 * What is about the set-up.
 * @param {Add} verb
 */
function addHelpers(verb) {
  verb('config', 'show the configuration, and where each value comes from')

  verb('doctor', 'check the server, the permissions, the lock, the changelog and the files')

  verb('completion', 'print a completion script for your shell').addArgument(
    new Argument('<shell>', 'whose it is').choices(SHELLS),
  )
}

/**
 * @param {string} text
 * @returns {number}
 */
export function positiveInteger(text) {
  if (/^\d+$/.test(text) && Number(text) >= 1 && Number.isSafeInteger(Number(text))) {
    return Number(text)
  }
  throw new InvalidValue('A whole number of at least 1 is expected.')
}

/**
 * Commander says which choices there are to one who chose wrongly, but not to one who chose nothing.
 * @param {Verb} verb
 */
function namingChoices(verb) {
  // Not in commander's types, and the one place where this mistake becomes words.
  const inner = /** @type {Verb & { missingArgument(name: string): void }} */ (verb)
  inner.missingArgument = (name) => {
    const choices = verb.registeredArguments.find((each) => each.name() === name)?.argChoices
    const list =
      choices === undefined ? '' : `: ${choices.join(', ').replace(/, ([^,]*)$/, ' or $1')}`
    verb.error(`error: missing required argument '${name}'${list}`, {
      code: 'commander.missingArgument',
    })
  }
  return verb
}

/**
 * `up --wait 0001-a.js` must not take the file for a time: a bare flag gets its value here.
 * @param {string[]} args
 */
function withBareWait(args) {
  const end = args.includes('--') ? args.indexOf('--') : args.length
  return args.map((arg, index) => {
    return arg === '--wait' && index < end ? `--wait=${BARE_WAIT}` : arg
  })
}

/**
 * @param {string} text
 * @returns {number | true} `true`: nobody set a time
 */
function waitBudget(text) {
  if (text === BARE_WAIT) return true
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text)
  throw new InvalidValue('Whole milliseconds are expected, as in --wait=60000.')
}
