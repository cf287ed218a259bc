/** `mmk list`: the migrations, or those in one state. */
import { Option } from '../commander.js'
import { EXIT } from '../exit.js'
import { withKit } from '../kit.js'
import { printRows } from '../table.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addList(program, action) {
  program
    .command('list')
    .description('list migrations')
    .addOption(new Option('--pending', 'only those to apply').conflicts('applied'))
    .addOption(new Option('--applied', 'only those applied').conflicts('pending'))
    .action(action(list))
}

/** @type {import('../program.js').Work} */
async function list(cli, { pending, applied }) {
  const filter = pending ? 'pending' : applied ? 'applied' : 'all'
  await printRows(cli, await withKit(cli, (kit) => kit.list(filter)))
  return EXIT.ok
}
