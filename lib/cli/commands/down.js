/** `mmk down [file]`: revert the last batch, another one, the last few, or one file. */
import { Option } from 'commander'
import { escapeText, plural } from '../../text.js'
import { EXIT } from '../exit.js'
import { positiveInteger } from '../flags.js'
import { withKit } from '../kit.js'
import { printJson } from '../output.js'
import { askFirst } from '../prompt.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addDown(program, action) {
  program
    .command('down')
    .description('revert the last batch, or what is named')
    .argument('[file]', 'only this one')
    .addOption(new Option('--batch <n>', 'revert this batch').argParser(positiveInteger))
    .addOption(new Option('--steps <n>', 'revert the last n').argParser(positiveInteger))
    .option('--no-lock', 'run without the lock: nothing else may run')
    .option('-f, --force', 'revert files that have changed since they were applied')
    .option('-y, --yes', 'do not ask')
    .action(action(down))
}

/** @type {import('../program.js').Work} */
async function down(cli, { batch, steps, lock, force, yes }, file) {
  if (force && !yes) {
    const refusal = await askFirst(cli, forceQuestion({ file, batch, steps }))
    if (refusal !== null) return refusal
  }
  const results = await withKit(cli, (kit) =>
    kit.down(file, { noLock: !lock, batch, steps, force }),
  )
  if (cli.json) printJson(results)
  return EXIT.ok
}

/** @param {{ file?: string, batch?: number, steps?: number }} target */
function forceQuestion({ file, batch, steps }) {
  const what = file
    ? `"${escapeText(file)}"`
    : batch
      ? `batch ${batch}`
      : steps
        ? `the last ${plural(steps, 'migration')}`
        : 'the last batch'
  return (
    '⚠ Forcing rollback ignores checksum drift — the current down() runs against your DB.\n' +
    `  Roll back ${what} anyway? [y/N] `
  )
}
