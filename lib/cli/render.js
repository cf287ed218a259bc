/**
 * Migrations as tables and notes. Pure: rows in, text out.
 */
import { escapeLines, escapeText, formatTime } from '../text.js'
import { gridText, NOTHING } from './grid.js'

/** @import { StatusRow } from '../../index.d.ts' */
/** @import { Cell, Colors } from './grid.js' */

/** @typedef {{ colors: Colors, utc?: boolean, width?: number | undefined }} TableOptions */

/**
 * @param {StatusRow[]} rows
 * @param {TableOptions} options `width` is the terminal's; without it nothing is wrapped
 * @returns {string}
 */
export function statusTable(rows, { colors, utc = false, width }) {
  const appliedAt = utc ? 'Applied At (UTC)' : 'Applied At'
  const head = ['Migration', 'Status', 'Batch', appliedAt, 'Duration', 'Checksum']
  const cells = rows.map((row) => paint(cellsOf(row, utc), row, colors))
  return gridText(head, cells, { colors, width })
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

/**
 * @param {string[]} cells
 * @param {StatusRow} row
 * @param {Colors} colors
 * @returns {Cell[]}
 */
function paint(cells, row, colors) {
  const stateColor = ['failed', 'interrupted'].includes(row.state)
    ? colors.red
    : row.status === 'applied'
      ? colors.green
      : colors.yellow
  const painted = cells.map((text) => /** @type {Cell} */ ({ text }))
  painted[1].paint = stateColor
  if (row.checksumOk === false) painted[5].paint = colors.red
  return painted
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
