/** Prints migrations as the reader of this terminal, pipe or program wants them. */
import { printJson, printResult, stdoutColors, terminalWidth } from './output.js'

/** @import { StatusRow } from '../../index.d.ts' */

/**
 * @param {import('./perform.js').Cli} cli
 * @param {StatusRow[]} rows
 */
export async function printRows({ globals, json }, rows) {
  if (json) return printJson(rows)
  if (rows.length === 0) return printResult('No migrations found')
  const { statusNotes, statusTable } = await import('./render.js')
  const utc = globals.utc === true
  printResult(statusTable(rows, { colors: stdoutColors(), utc, width: terminalWidth() }))
  for (const note of statusNotes(rows, { utc })) printResult(note)
}
