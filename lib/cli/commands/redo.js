/** `mmk redo [file]`: revert a migration and apply it again, as it is now. */
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addRedo(program, action) {
  program
    .command('redo')
    .description('revert the latest migration and apply it again')
    .argument('[file]', 'this one instead')
    .action(action(redo))
}

/** @type {import('../program.js').Work} */
async function redo(cli, _options, file) {
  const results = await withRunningKit(cli, (kit) => kit.redo(file))
  if (cli.json) printJson(results)
  return EXIT.ok
}
