/**
 * The logger that is used when the configuration names none: 1.x's streams and colours.
 *
 * `info`, `success` and `dim` go to standard output, `warn` and `error` to standard error. Colour is
 * decided for each stream by itself, so a piped stdout stays plain beside a coloured stderr.
 */
import { createColors, wantsColor } from './colors.js'

/** @import { MmkLogger } from '../index.d.ts' */
/** @import { Sink } from './colors.js' */

/** The methods of every logger. */
export const LEVELS = /** @type {const} */ (['info', 'success', 'dim', 'warn', 'error'])

/**
 * @param {{ stdout?: Sink, stderr?: Sink, env?: NodeJS.ProcessEnv }} [options]
 * @returns {MmkLogger}
 */
export function createLogger({ stdout, stderr, env } = {}) {
  const out = stdout ?? process.stdout
  const err = stderr ?? process.stderr
  const outColors = createColors(wantsColor(out, env))
  const errColors = createColors(wantsColor(err, env))
  return {
    info: (message) => void out.write(`${message}\n`),
    success: (message) => void out.write(`${outColors.green(message)}\n`),
    dim: (message) => void out.write(`${outColors.dim(message)}\n`),
    warn: (message) => void err.write(`${errColors.yellow(message)}\n`),
    error: (message) => void err.write(`${errColors.red(message)}\n`),
  }
}
