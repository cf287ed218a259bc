/** `mmk down [file]`: revert the last batch, another one, the last few, back to a file, or one. */

import { escapeText, plural } from '../../text.js'
import { Option } from '../commander.js'
import { EXIT } from '../exit.js'
import { positiveInteger } from '../flags.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/** @typedef {{ file?: string, to?: string, batch?: number, steps?: number }} Target */

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addDown(program, action) {
  program
    .command('down')
    .description('revert the last batch, or what is named')
    .argument('[file]', 'only this one')
    .option('--to <file>', 'revert what was applied after this one')
    .addOption(new Option('--batch <n>', 'revert this batch').argParser(positiveInteger))
    .addOption(new Option('--steps <n>', 'revert the last n').argParser(positiveInteger))
    .option('--no-lock', 'run without the lock: nothing else may run')
    .option('-f, --force', 'revert files that have changed since they were applied')
    .option('-y, --yes', 'do not ask')
    .option('--dry-run', 'show what would be reverted, and revert nothing')
    .action(action(down))
}

/** @type {import('../program.js').Work} */
async function down(cli, { to, batch, steps, lock, force, yes, dryRun }, file) {
  if (dryRun) {
    const { rehearse } = await import('../rehearsal.js')
    await rehearse(cli, 'down', file, { to, batch, steps, force })
    return EXIT.ok
  }
  if (force && !yes) {
    const { askFirst } = await import('../prompt.js')
    const refusal = await askFirst(cli, forceQuestion({ file, to, batch, steps }))
    if (refusal !== null) return refusal
  }
  const results = await withRunningKit(cli, (kit) =>
    kit.down(file, { noLock: !lock, to, batch, steps, force }),
  )
  if (cli.json) printJson(results, { dryRun: false })
  return EXIT.ok
}

/** @param {Target} target */
function forceQuestion(target) {
  return (
    '⚠ Forcing rollback ignores checksum drift — the current down() runs against your DB.\n' +
    `  Roll back ${nameOf(target)} anyway? [y/N] `
  )
}

/** @param {Target} target */
function nameOf({ file, to, batch, steps }) {
  if (file) return `"${escapeText(file)}"`
  if (to) return `everything applied after "${escapeText(to)}"`
  if (batch) return `batch ${batch}`
  return steps ? `the last ${plural(steps, 'migration')}` : 'the last batch'
}
