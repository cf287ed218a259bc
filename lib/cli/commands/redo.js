/** `mmk redo [file]`: revert a migration and apply it again, as it is now. */
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/** @type {import('../perform.js').Work} */
export async function run(cli, _options, file) {
  const results = await withRunningKit(cli, (kit) => kit.redo(file))
  if (cli.json) printJson(results)
  return EXIT.ok
}
