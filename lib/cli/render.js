/**
 * Tables and notes about migrations. Pure: rows in, text out.
 */
import Table from 'cli-table3'
import { escapeLines, escapeText, formatTime } from '../text.js'

/** @import { StatusRow } from '../../index.d.ts' */

/** @typedef {ReturnType<typeof import('picocolors').createColors>} Colors */

/** @typedef {{ colors: Colors, utc?: boolean, width?: number | undefined }} TableOptions */

const NOTHING = '—'
const MIN_NAME_WIDTH = 16

/** Characters that take two columns on a terminal. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu

/**
 * @param {StatusRow[]} rows
 * @param {TableOptions} options `width` is the terminal's; without it nothing is wrapped
 * @returns {string}
 */
export function statusTable(rows, { colors, utc = false, width }) {
  const appliedAt = utc ? 'Applied At (UTC)' : 'Applied At'
  const head = ['Migration', 'Status', 'Batch', appliedAt, 'Duration', 'Checksum']
  const cells = rows.map((row) => cellsOf(row, utc))
  const colWidths = fitWidths([head, ...cells], width)
  const table = new Table({
    head: head.map((text) => colors.cyan(text)),
    style: { head: [], border: [], compact: true },
    ...(colWidths && { colWidths, wordWrap: true, wrapOnWordBoundary: false }),
  })
  for (const [index, row] of rows.entries()) table.push(paint(cells[index], row, colors))
  return table.toString()
}

/** @param {StatusRow} row @param {boolean} utc */
function cellsOf(row, utc) {
  const time = row.appliedAt === null ? NOTHING : formatTime(row.appliedAt, { utc })
  return [
    escapeText(row.file),
    stateText(row),
    row.batch === null ? NOTHING : String(row.batch),
    time.replace(/ UTC$/, ''),
    row.duration === null ? NOTHING : `${row.duration}ms`,
    row.checksumOk === null ? NOTHING : row.checksumOk ? 'ok' : 'MISMATCH',
  ]
}

/** @param {StatusRow} row */
function stateText({ state, direction, missing }) {
  const reverting = direction === 'down' && ['running', 'interrupted'].includes(state)
  return `${state}${reverting ? ' (down)' : ''}${missing ? ' (no file)' : ''}`
}

/** @param {string[]} cells @param {StatusRow} row @param {Colors} colors */
function paint(cells, row, colors) {
  const [file, state, batch, time, duration, checksum] = cells
  const stateColor = ['failed', 'interrupted'].includes(row.state)
    ? colors.red
    : row.status === 'applied'
      ? colors.green
      : colors.yellow
  const sumColor = row.checksumOk === false ? colors.red : String
  return [file, stateColor(state), batch, time, duration, sumColor(checksum)]
}

/** @param {string} text */
function widthOf(text) {
  return [...text].length + (text.match(WIDE)?.length ?? 0)
}

/**
 * Column widths for a terminal that the table would overflow: the names give way and are wrapped.
 * @param {string[][]} lines
 * @param {number | undefined} width
 * @returns {number[] | null} `null`: it fits as it is
 */
function fitWidths(lines, width) {
  if (width === undefined) return null
  const padding = 2
  const widths = lines[0].map((_, column) => {
    return Math.max(...lines.map((line) => widthOf(line[column]))) + padding
  })
  const borders = widths.length + 1
  const total = widths.reduce((sum, each) => sum + each, borders)
  if (total <= width) return null
  return [Math.max(MIN_NAME_WIDTH, widths[0] - (total - width)), ...widths.slice(1)]
}

/**
 * What a table has no room for: who was interrupted, what failed and how.
 * @param {StatusRow[]} rows
 * @param {{ utc?: boolean }} [options]
 * @returns {string[]}
 */
export function statusNotes(rows, options = {}) {
  return rows.flatMap((row) => noteOf(row, options) ?? [])
}

/** @param {StatusRow} row @param {{ utc?: boolean }} options */
function noteOf(row, options) {
  const name = escapeText(row.file)
  const doing = row.direction === 'down' ? 'reverted' : 'applied'
  if (row.state === 'interrupted') {
    return `⚠ ${name} was interrupted while being ${doing}${whoText(row, options)}`
  }
  if (row.state === 'running') return `… ${name} is being ${doing} now${whoText(row, options)}`
  if (row.error !== null) {
    const [first] = escapeLines(row.error.message).split('\n')
    const verb = row.state === 'failed' ? 'failed' : 'could not be reverted'
    return `⚠ ${name} ${verb}${whoText(row, options)}: ${escapeText(row.error.name)}: ${first}`
  }
  if (row.missing) return `⚠ ${name} is applied, but its file is gone`
  if (row.checksumOk === false) return `⚠ ${name} was changed after it was applied`
  return null
}

/** @param {StatusRow} row @param {{ utc?: boolean }} options */
function whoText({ startedAt, executedBy, host }, options) {
  const facts = [
    startedAt === null ? '' : `started ${formatTime(startedAt, options)}`,
    executedBy === null ? '' : `by ${escapeText(executedBy)}`,
    host === null ? '' : `on ${escapeText(host)}`,
  ].filter(Boolean)
  return facts.length > 0 ? ` (${facts.join(' ')})` : ''
}
