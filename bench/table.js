/**
 * Results as Markdown. Pure.
 */
import { median, quantile, ratio } from './stats.js'

/** @import { Column, Result, Row } from './measurement.d.ts' */
/** @import { Want } from './wants.js' */

/**
 * @typedef {{ ours: string, oneX: string, migrateMongo: string }} Labels
 *
 * @typedef {object} Facts
 * @property {string} date ISO, the day
 * @property {string} machine
 * @property {string} versions
 * @property {readonly string[]} noise what speaks against the figures
 * @property {readonly { file: string, title: string }[]} plots
 */

const columns = /** @type {const} */ (['ours', 'oneX', 'migrateMongo'])
const nothing = '–'

/**
 * @param {number} value
 * @returns {string} three digits that mean something, and no exponent
 */
export function figure(value) {
  if (value === 0) return '0'
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  const rounded = Number(value.toFixed(digits))
  return rounded.toLocaleString('en', { maximumFractionDigits: digits })
}

/** @param {Row} row @param {Column} column @returns {string} */
function cell({ samples, show }, column) {
  const own = samples[column]
  if (!own?.length) return nothing
  if (show === 'tail') return `p50 ${figure(median(own))}, p95 ${figure(quantile(own, 0.95))}`
  const middle = figure(median(own))
  const least = figure(Math.min(...own))
  return middle === least ? middle : `${middle} (${least})`
}

/** @param {Row} row @param {Column} other @returns {string} */
function ratioCell({ samples }, other) {
  const found = ratio(samples.ours ?? [], samples[other] ?? [])
  if (!found) return nothing
  const [middle, low, high] = [found.median, found.low, found.high].map(figure)
  return low === high ? `${middle}×` : `${middle}× [${low}–${high}]`
}

/**
 * @param {readonly (readonly string[])[]} rows the first is the head
 * @returns {string}
 */
export function markdownTable(rows) {
  const lines = rows.map((cells) => `| ${cells.join(' | ')} |`)
  return [lines[0], `|${'---|'.repeat(rows[0]?.length ?? 0)}`, ...lines.slice(1)].join('\n')
}

/**
 * @param {Result} result
 * @param {Labels} labels
 * @returns {string} its section
 */
export function section({ title, about, rows }, labels) {
  const names = columns.map((column) => labels[column])
  const head = ['', ...names, `÷ ${labels.oneX}`, `÷ ${labels.migrateMongo}`]
  const body = rows.map((row) => [
    `${row.work}, ${row.unit}`,
    // An empty process belongs to none of the three.
    ...(row.samples.node ? [cell(row, 'node'), '', ''] : columns.map((each) => cell(row, each))),
    ratioCell(row, 'oneX'),
    ratioCell(row, 'migrateMongo'),
  ])
  const table = markdownTable([head, ...body])
  return `## ${title}\n\n${about}\n\n${table}\n${details(rows, labels)}`
}

/** @param {readonly Row[]} rows @param {Labels} labels @returns {string} a list, if there is any */
function details(rows, labels) {
  const lines = rows.flatMap(({ work, detail = {} }) =>
    columns.flatMap((column) => {
      const text = detail[column]
      return text ? [`- ${work}, ${labels[column]}: ${text}`] : []
    }),
  )
  return lines.length > 0 ? `\nWith the bodies' own:\n\n${lines.join('\n')}\n` : ''
}

/**
 * @param {readonly Want[]} wants
 * @returns {string}
 */
export function wantsSection(wants) {
  const words = { yes: 'yes', no: '**no**', unknown: 'not measured' }
  const body = wants.map(({ work, want, measured, met }) => [work, want, measured, words[met]])
  const head = ['work', 'wanted', 'measured', 'met']
  return `## What was wanted\n\n${markdownTable([head, ...body])}\n`
}

/**
 * @param {Facts} facts
 * @param {readonly Want[]} wants
 * @param {readonly Result[]} results
 * @param {Labels} labels
 * @returns {string} the whole document
 */
export function document({ date, machine, versions, noise, plots }, wants, results, labels) {
  const warning =
    noise.length > 0 ? `\n**A noisy run, not to be quoted:** ${noise.join('; ')}.\n` : ''
  const images = plots.map(({ file, title }) => `![${title}](${file})`).join('\n\n')
  return `# Benchmarks

<!-- Written by \`npm run bench\`: run it again, don't edit. -->

Measured on ${date}. ${machine}. ${versions}.
${warning}
The tools take turns, round by round, on the same server. A cell has the median and, in brackets, the
least; a ratio is ours divided by theirs, pair by pair: the median and the quartiles. Less is better
everywhere. All samples: [results.json](benchmarks/results.json).

${[wantsSection(wants), ...results.map((result) => section(result, labels))].join('\n')}
${images ? `## Growth\n\n${images}\n` : ''}`
}
