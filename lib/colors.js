/** Colours for terminals. Loaded as `cli/commander.js` is, and for its reason. */
import { createRequire } from 'node:module'

/** @type {typeof import('picocolors')} */
const picocolors = createRequire(import.meta.url)('picocolors')

export const { createColors } = picocolors

/** @typedef {{ write(text: string): unknown, isTTY?: boolean }} Sink */

/**
 * Should a stream get colours? `NO_COLOR` forbids, `FORCE_COLOR` asks (0 and false forbid), otherwise
 * only a terminal that can show them does.
 * @param {Sink} sink
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {boolean}
 */
export function wantsColor(sink, env = process.env) {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return !['0', 'false'].includes(env.FORCE_COLOR)
  return sink.isTTY === true && env.TERM !== 'dumb'
}
