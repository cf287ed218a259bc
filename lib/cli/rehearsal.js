/** A dry run on the command line: the rows in the order of the run, and nothing said of no rows. */
import { fullRow } from './document.js'
import { withKit } from './kit.js'
import { printJson } from './output.js'
import { printRows } from './table.js'

/** @import { DryRunOptions, MmkConfig } from '../../index.d.ts' */

/**
 * @param {import('./perform.js').Cli} cli
 * @param {'up' | 'down'} direction
 * @param {string | undefined} file
 * @param {DryRunOptions} options
 * @param {Partial<MmkConfig>} [flags] the verb's own flags, as configuration
 */
export async function rehearse(cli, direction, file, options, flags) {
  const rows = await withKit(cli, (kit) => kit.dryRun(direction, file, options), flags)
  if (cli.json) printJson(rows, { dryRun: true, migrations: rows.map(fullRow) })
  else if (rows.length > 0) await printRows(cli, rows)
}
