/**
 * Small pure functions that turn values into text for a terminal.
 *
 * Promises: no function here throws, whatever it is given, and nothing that leaves `escapeText` can
 * move a cursor, start a new line or reverse the reading direction. It does not promise to remove
 * secrets: that is `redact.js`.
 */

const MISSING = '—'

/** Control characters, line separators, direction overrides, a BOM and lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** @type {Record<string, string>} */
const SHORT_ESCAPES = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** @param {string} char */
function escapeChar(char) {
  const code = char.charCodeAt(0)
  if (SHORT_ESCAPES[char]) return SHORT_ESCAPES[char]
  const hex = code.toString(16)
  return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`
}

/**
 * Makes a name that someone else chose safe to print on one line.
 * @param {unknown} value
 * @returns {string}
 */
export function escapeText(value) {
  return textOf(value).replace(UNPRINTABLE, escapeChar)
}

/** A stored document may have a field called `toString`. @param {unknown} value */
function textOf(value) {
  try {
    return String(value)
  } catch {
    return 'something that has no text'
  }
}

/**
 * The same for a text that may have several lines: line breaks and tabs stay.
 * @param {string} text
 * @returns {string}
 */
export function escapeLines(text) {
  return text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, (char) => {
    return char === '\n' || char === '\t' ? char : escapeChar(char)
  })
}

/**
 * An instant as a `Date`, or `null` when it can't be read as one: stored documents are not trusted.
 * @param {unknown} value a Date or milliseconds since 1970
 * @returns {Date | null}
 */
export function toDate(value) {
  if (!(value instanceof Date) && typeof value !== 'number') return null
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? null : date
}

/**
 * `yyyy-MM-dd HH:mm:ss` in the reader's own time zone, or in UTC with the zone named.
 * @param {unknown} value a Date or milliseconds since 1970
 * @param {{ utc?: boolean }} [options]
 * @returns {string}
 */
export function formatTime(value, { utc = false } = {}) {
  const date = toDate(value)
  if (date === null) return MISSING
  const offset = utc ? 0 : date.getTimezoneOffset() * MINUTE
  const shifted = toDate(date.getTime() - offset) ?? date
  const text = shifted
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '')
  return utc ? `${text} UTC` : text
}

/**
 * How long something lasted or lies back, in its two largest units: `4s`, `3m 20s`, `2h 5m`, `3d 4h`.
 * @param {number} ms
 * @returns {string}
 */
export function formatAge(ms) {
  const rest = Math.max(0, Number.isFinite(ms) ? ms : 0)
  if (rest < MINUTE) return `${Math.floor(rest / SECOND)}s`
  if (rest < HOUR) return twoUnits(rest, MINUTE, 'm', SECOND, 's')
  if (rest < DAY) return twoUnits(rest, HOUR, 'h', MINUTE, 'm')
  return twoUnits(rest, DAY, 'd', HOUR, 'h')
}

/**
 * @param {number} ms
 * @param {number} large
 * @param {string} largeName
 * @param {number} small
 * @param {string} smallName
 */
function twoUnits(ms, large, largeName, small, smallName) {
  const count = Math.floor(ms / large)
  const rest = Math.floor((ms % large) / small)
  return rest === 0 ? `${count}${largeName}` : `${count}${largeName} ${rest}${smallName}`
}

/**
 * @param {number} count
 * @param {string} noun
 * @param {string} [nouns] more than one of it
 */
export function plural(count, noun, nouns = `${noun}s`) {
  return `${count} ${count === 1 ? noun : nouns}`
}

/**
 * Names for one line, the first few of them: a list of thousands helps nobody.
 * @param {string[]} names
 * @param {number} [limit]
 * @returns {string}
 */
export function listNames(names, limit = 10) {
  const shown = names.slice(0, limit).map(escapeText).join(', ')
  return names.length > limit ? `${shown} … and ${names.length - limit} more` : shown
}
