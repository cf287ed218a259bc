/**
 * Tables. Pure: cells in, text out.
 *
 * Promises: with a width, no line is wider, so that no terminal breaks one. The names in the first
 * column give way and go on in the next line; where even that is not enough, there is no table but
 * two or more lines for each row.
 */
/** @typedef {ReturnType<typeof import('picocolors').createColors>} Colors */

/** @typedef {{ text: string, paint?: (text: string) => string }} Cell */

/** What stands in a cell of which nothing is known. */
export const NOTHING = '—'

/** Narrower names can't be recognised. */
const MIN_NAME = 14
/** A border and two blanks for each cell, and the last border. */
const FRAME = 3
const INDENT = '  '

/** Characters that take two columns on a terminal. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu

/** Text without any of them, and without characters that are two to JavaScript. */
const NARROW = /^[\0-\u10ff\u2000-\u206f]*$/

/** @param {string} text */
function widthOf(text) {
  if (NARROW.test(text)) return text.length
  return [...text].length + (text.match(WIDE)?.length ?? 0)
}

/**
 * @param {string[]} head
 * @param {Cell[][]} rows
 * @param {{ colors: Colors, width?: number | undefined }} options `width` is the terminal's; without
 *   it nothing is wrapped
 * @returns {string}
 */
export function gridText(head, rows, { colors, width = Infinity }) {
  const widths = head.map((label, column) => {
    return Math.max(widthOf(label), ...rows.map((row) => widthOf(row[column].text)))
  })
  const others = widths.slice(1).reduce((sum, each) => sum + each, FRAME * widths.length + 1)
  const room = width - others
  if (widths[0] <= room) return framed(head, rows, colors)
  if (room < MIN_NAME) return rows.map((row) => stacked(head, row, width)).join('\n')
  const folded = rows.map(([name, ...rest]) => [
    { ...name, text: foldName(name.text, room).join('\n') },
    ...rest,
  ])
  return framed(head, folded, colors)
}

/** @param {string[]} head @param {Cell[][]} rows a cell may have several lines @param {Colors} colors */
function framed(head, rows, colors) {
  const cells = [head.map((text) => ({ text, paint: colors.cyan })), ...rows].map((row) => {
    return row.map(({ text, paint = String }) => ({ lines: text.split('\n'), paint }))
  })
  const widths = head.map((_, column) => {
    return Math.max(...cells.map((row) => Math.max(...row[column].lines.map(widthOf))))
  })
  const rule = (
    /** @type {string} */ left,
    /** @type {string} */ middle,
    /** @type {string} */ right,
  ) => left + widths.map((width) => '─'.repeat(width + 2)).join(middle) + right
  const [headLine, ...lines] = cells.map((row) => rowText(row, widths))
  return [rule('┌', '┬', '┐'), headLine, rule('├', '┼', '┤'), ...lines, rule('└', '┴', '┘')].join(
    '\n',
  )
}

/**
 * @param {{ lines: string[], paint: (text: string) => string }[]} row
 * @param {number[]} widths
 */
function rowText(row, widths) {
  const height = Math.max(...row.map(({ lines }) => lines.length))
  return Array.from({ length: height }, (_, index) => {
    const texts = row.map(({ lines, paint }, column) => {
      const text = lines[index] ?? ''
      return ` ${text && paint(text)}${' '.repeat(widths[column] - widthOf(text))} `
    })
    return `│${texts.join('│')}│`
  }).join('\n')
}

/** @param {string[]} head @param {Cell[]} row @param {number} width */
function stacked(head, [name, ...facts], width) {
  const lines = ['']
  for (const [index, fact] of facts.entries()) {
    if (fact.text === NOTHING) continue
    const last = lines.length - 1
    const line = `${lines[last]}${lines[last] === '' ? INDENT : ' · '}${head[index + 1]} ${fact.text}`
    if (widthOf(line) <= width || lines[last] === '') lines[last] = line
    else lines.push(`${INDENT}${head[index + 1]} ${fact.text}`)
  }
  return [...foldName(name.text, width), ...lines].join('\n')
}

/**
 * @param {string} name
 * @param {number} width
 * @returns {string[]} its parts, none of them wider
 */
function foldName(name, width) {
  const parts = ['']
  for (const char of name) {
    const longer = parts[parts.length - 1] + char
    if (widthOf(longer) <= width) parts[parts.length - 1] = longer
    else parts.push(char)
  }
  return parts
}
