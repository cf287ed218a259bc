/**
 * Rounds in turn: A B C, A B C and not A A, B B, C C, so that a machine that slows down for a while
 * slows all of them.
 */

/** @import { Column, Context, Row } from '../measurement.d.ts' */

/**
 * @param {Context} context
 * @param {number} usual
 * @param {number} quick
 */
export const roundsOf = ({ rounds, quick: isQuick }, usual, quick) =>
  rounds ?? (isQuick ? quick : usual)

/**
 * @param {string} id
 * @param {string} work
 * @param {Row['unit']} unit
 * @param {Row['show']} [show]
 * @returns {Row} without samples yet
 */
export const row = (id, work, unit, show = 'median') => ({ id, work, unit, show, samples: {} })

/**
 * @param {Row} to
 * @param {Column} column
 * @param {number} sample
 */
export function add(to, column, sample) {
  to.samples[column] = [...(to.samples[column] ?? []), sample]
}
