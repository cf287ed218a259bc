/** `mmk up [file]`: apply what is pending, or one file. */

import { escapeText } from '../../text.js'
import { Command, InvalidArgumentError as InvalidValue } from '../commander.js'
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/** @import { LockOptions } from '../../../index.d.ts' */

const BARE_WAIT = 'default'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addUp(program, action) {
  const command = program
    .command('up')
    .description('apply pending migrations')
    .argument('[file]', 'only this one')
    .option('--to <file>', 'apply up to and including this one')
    .option('--wait [ms]', 'wait for the run that holds the lock, at most so long', waitBudget)
    .option('--no-lock', 'run without the lock: nothing else may run')
    .option('--strict', 'refuse when applied files have changed')
    .option('--step', 'a batch for each migration')
    .option('-f, --force', 'apply FILE again although it is applied')
    .option('--force-fresh', 'apply files that another tool has applied')
    .option('-y, --yes', 'do not ask')
    .option('--dry-run', 'show what would be applied, and apply nothing')
    .action(action(up))
  command.parseOptions = (args) => {
    return Command.prototype.parseOptions.call(command, withBareWait(args))
  }
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

/** @type {import('../program.js').Work} */
async function up(cli, options, file) {
  const { to, force, forceFresh, step, strict, wait, yes } = options
  const flags = strict ? { strict } : {}
  if (options.dryRun) {
    const { rehearse } = await import('../rehearsal.js')
    await rehearse(cli, 'up', file, { to, force, forceFresh }, flags)
    return EXIT.ok
  }
  if (file !== undefined && force && !yes) {
    const question = `are you sure you want to re-run "${escapeText(file)}"? [y/N] `
    const { askFirst } = await import('../prompt.js')
    const refusal = await askFirst(cli, question)
    if (refusal !== null) return refusal
  }
  const results = await withRunningKit(
    cli,
    (kit) => {
      const lock = { noLock: !options.lock, ...waitOptions(wait) }
      return kit.up(file, { to, force, forceFresh, step, ...lock })
    },
    flags,
  )
  if (cli.json) printJson(results, { dryRun: false })
  return EXIT.ok
}

/**
 * @param {number | true | undefined} wait
 * @returns {LockOptions}
 */
function waitOptions(wait) {
  if (wait === undefined) return {}
  return wait === true ? { onLockHeld: 'wait' } : { onLockHeld: 'wait', lockWaitTimeoutMs: wait }
}
