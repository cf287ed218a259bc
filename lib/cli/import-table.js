/** The table of an import. Pure: rows in, text out. */
import Table from 'cli-table3'
import { escapeText, formatTime } from '../text.js'

/** @import { ImportRow } from '../../index.d.ts' */

/**
 * @param {ImportRow[]} rows
 * @param {{ colors: import('./render.js').Colors, utc?: boolean }} options
 * @returns {string}
 */
export function importTable(rows, { colors, utc = false }) {
  const paint = { reused: colors.cyan, recomputed: colors.green, missing: colors.red }
  const head = ['Migration', 'Batch', utc ? 'Applied At (UTC)' : 'Applied At', 'Checksum']
  const table = new Table({
    head: head.map((text) => colors.cyan(text)),
    style: { head: [], border: [], compact: true },
  })
  for (const { file, batch, appliedAt, checksumSource } of rows) {
    const time = formatTime(appliedAt, { utc }).replace(/ UTC$/, '')
    table.push([escapeText(file), String(batch), time, paint[checksumSource](checksumSource)])
  }
  return table.toString()
}
