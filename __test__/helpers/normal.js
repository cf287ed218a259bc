/**
 * Output without what differs from one run to the next: times, durations, ids, ports, processes,
 * hosts, folders. What is cut out keeps its width where a table depends on it.
 */
import { hostname, userInfo } from 'node:os'

/** Of a picture of the spinner, however many there were. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an erased line is what we look for
const FRAMES = /(?:[^\r\n]*\r\u001b\[2K)+/g

/** @type {[RegExp, string][]} */
const PATTERNS = [
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'yyyy-MM-dd HH:mm:ss'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, 'yyyy-MM-ddTHH:mm:ss.SSSZ'],
  [/\b\d{14}-(?=[\p{L}\d-]+\.)/gu, 'yyyyMMddHHmmss-'],
  [/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '<uuid>'],
  [/\[\d+ms\]/g, '[Nms]'],
  [/Duration \d+ms/g, 'Duration Nms'],
  [/\b[\da-f]{24}\b/g, '<object id>'],
  [/\b\d+s ago/g, 'Ns ago'],
  [/MongoDB \d+\.\d+\.\d+/g, 'MongoDB <version>'],
  [/mmk_test_[\da-f]{8}/g, '<database>'],
  [/(127\.0\.0\.1|localhost):\d{4,5}/g, '<server>'],
]

/**
 * @param {string} text
 * @param {{ folder: string }} app
 * @returns {string}
 */
export function normal(text, { folder }) {
  const frameless = text.replace(FRAMES, (frames) => `${lastFrame(frames)}\n`)
  const placed = frameless.replaceAll(folder, '<app>')
  const general = PATTERNS.reduce((rest, [pattern, name]) => rest.replace(pattern, name), placed)
  return withoutPeople(general.split('\n').map(evenDurations).join('\n')).replaceAll('\u001b', '␛')
}

/** @param {string} frames */
function lastFrame(frames) {
  const [last] = frames.split('\r\u001b[2K').filter(Boolean).slice(-1)
  return last.replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/, '⠿').replace(/\d+s$/, 'Ns')
}

/** A duration in a table, in the width of its column. @param {string} line */
function evenDurations(line) {
  if (!line.includes('│')) return line
  return line.replace(/\b(\d+)ms( +)/g, (_, digits, spaces) => {
    return `Nms${' '.repeat(spaces.length + digits.length - 1)}`
  })
}

/** @param {string} text */
function withoutPeople(text) {
  return text
    .replaceAll(`by ${userInfo().username} on ${hostname()}`, 'by <user> on <host>')
    .replaceAll(`by ${userInfo().username})`, 'by <user>)')
}
