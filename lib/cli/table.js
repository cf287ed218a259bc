/** Prints migrations as the reader of this terminal, pipe or program wants them. */
import { printJson, printResult, stdoutColors, terminalWidth } from './output.js'

/** @import { StatusRow } from '../../index.d.ts' */

/**
 * What `read` resolves to; what prints it is loaded while the server answers.
 * @template T
 * @param {import('./perform.js').Cli} cli
 * @param {() => Promise<T>} read
 * @returns {Promise<T>}
 */
export async function readingRows({ json }, read) {
  const [rows] = await Promise.all([read(), json || import('./render.js')])
  return rows
}

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
