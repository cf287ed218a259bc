/** `mmk import`: take over the history of another tool. */
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson, printResult, stdoutColors, terminalWidth } from '../output.js'

/** @type {import('../perform.js').Work} */
export async function run(cli, { lock, ...options }) {
  const { from, to, tool, dryRun, trustHash, skipMissing, force } = options
  const wishes = { from, to, tool, dryRun, trustHash, skipMissing, force, noLock: !lock }
  const result = await withRunningKit(cli, (kit) => kit.import(wishes))
  const { rows, ...facts } = result
  if (cli.json) printJson(result, { ...facts, migrations: rows })
  else if (result.rows.length > 0) await printTable(result.rows, cli.globals.utc)
  return result.rejected.some(({ file }) => file !== null) ? EXIT.attention : EXIT.ok
}

/**
 * @param {import('../../../index.d.ts').ImportRow[]} rows
 * @param {boolean | undefined} utc
 */
async function printTable(rows, utc = false) {
  const { importTable } = await import('../import-table.js')
  printResult(importTable(rows, { colors: stdoutColors(), utc, width: terminalWidth() }))
}
