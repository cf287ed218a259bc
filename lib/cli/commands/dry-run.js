/** `mmk dry-run <up|down> [file]`: what a run would do, without doing it. */
import { Argument, Option } from '../commander.js'
import { EXIT } from '../exit.js'
import { positiveInteger } from '../flags.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addDryRun(program, action) {
  program
    .command('dry-run')
    .description('show what up or down would do, and do nothing')
    .addArgument(new Argument('<direction>', 'of the run').choices(['up', 'down']))
    .argument('[file]', 'only this one')
    .option('--to <file>', 'up: through this one; down: what was applied after it')
    .addOption(new Option('--batch <n>', 'down: this batch').argParser(positiveInteger))
    .addOption(new Option('--steps <n>', 'down: the last n').argParser(positiveInteger))
    .action(action(dryRun))
}

/** @type {import('../program.js').Work} */
async function dryRun(cli, { to, batch, steps }, direction, file) {
  const { rehearse } = await import('../rehearsal.js')
  await rehearse(cli, direction, file, { to, batch, steps })
  return EXIT.ok
}
