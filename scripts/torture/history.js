/**
 * What the processes of a torture saw, as append-only JSON lines, one file for each process.
 *
 * Promises that a line is in the file when `record` returns, so that a kill takes away nothing that
 * had happened. Its instants compare between the processes of one machine: they come from the
 * monotonic clock of the system.
 */
import { openSync, writeSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hrtime, pid } from 'node:process'

/**
 * @typedef {{ t: number, who: string, pid: number, ev: string, [field: string]: any }} Line
 *   `t` in milliseconds
 * @typedef {(ev: string, fields?: Record<string, unknown>) => void} Recorder
 */

/** Milliseconds on the clock of all histories. */
export const now = () => Number(hrtime.bigint()) / 1e6

/**
 * @param {string} folder
 * @param {string} who
 * @returns {Recorder}
 */
export function openHistory(folder, who) {
  const file = openSync(join(folder, `${who}-${pid}.jsonl`), 'a')
  return (ev, fields = {}) => {
    writeSync(file, `${JSON.stringify({ t: now(), who, pid, ev, ...fields })}\n`)
  }
}

/**
 * @param {string} folder
 * @returns {Promise<Line[]>} of all processes, in the order in which they happened
 */
export async function readHistory(folder) {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.jsonl'))
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))
  const lines = texts.flatMap((text) => text.split('\n').flatMap(parsed))
  return lines.sort((a, b) => a.t - b.t)
}

/** @param {string} text @returns {Line[]} none when a kill came in the middle of the line */
function parsed(text) {
  try {
    return [JSON.parse(text)]
  } catch {
    return []
  }
}
