/** The table of an import. Pure: rows in, text out. */
import { escapeText, formatTime } from '../text.js'
import { gridText } from './grid.js'

/** @import { ImportRow } from '../../index.d.ts' */

/**
 * @param {ImportRow[]} rows
 * @param {import('./render.js').TableOptions} options
 * @returns {string}
 */
export function importTable(rows, { colors, utc = false, width }) {
  const paint = { reused: colors.cyan, recomputed: colors.green, missing: colors.red }
  const head = ['Migration', 'Batch', utc ? 'Applied At (UTC)' : 'Applied At', 'Checksum']
  const cells = rows.map(({ file, batch, appliedAt, checksumSource }) => [
    { text: escapeText(file) },
    { text: String(batch) },
    { text: formatTime(appliedAt, { utc }).replace(/ UTC$/, '') },
    { text: checksumSource, paint: paint[checksumSource] },
  ])
  return gridText(head, cells, { colors, width })
}
