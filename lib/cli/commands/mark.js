/** `mmk mark <file>`: say what is so, after a look at the database. No body runs. */

import { InvalidArgumentError } from '../../errors.js'
import { Option } from '../commander.js'
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addMark(program, action) {
  program
    .command('mark')
    .description('record by hand what is true of a migration')
    .argument('<file>', 'the migration')
    .addOption(
      new Option('--applied', 'it is done, and its file is right as it is now').conflicts(
        'pending',
      ),
    )
    .addOption(new Option('--pending', 'it is not done, or is undone'))
    .option('--reason <text>', 'why, for whoever reads the changelog later')
    .action(action(mark))
}

/** @type {import('../program.js').Work} */
async function mark(cli, { applied, pending, reason }, file) {
  if (!applied && !pending) {
    throw new InvalidArgumentError('`mark` has to be told what is so', {
      hint: 'add --applied or --pending',
    })
  }
  const state = applied ? 'applied' : 'pending'
  const result = await withRunningKit(cli, (kit) => kit.mark(file, state, { reason }))
  // Version 2 has it among its migrations.
  if (cli.json) printJson(result, {})
  return EXIT.ok
}
