/**
 * What the benchmarks say about a list of samples. Pure: no clock, no I/O.
 *
 * Medians and quartiles throughout: on a shared machine one slow round says nothing about the work.
 */

/** @typedef {{ median: number, low: number, high: number }} Spread `low` and `high` are the quartiles */

/**
 * @param {readonly number[]} samples at least one
 * @param {number} share 0 to 1
 * @returns {number} the quantile, between two samples by interpolation
 */
export function quantile(samples, share) {
  if (samples.length === 0) throw new RangeError('a quantile of nothing')
  const sorted = [...samples].sort((a, b) => a - b)
  const position = share * (sorted.length - 1)
  const below = sorted[Math.floor(position)] ?? Number.NaN
  const above = sorted[Math.ceil(position)] ?? Number.NaN
  return below + (above - below) * (position - Math.floor(position))
}

/** @param {readonly number[]} samples */
export const median = (samples) => quantile(samples, 0.5)

/** @param {readonly number[]} samples @returns {Spread} */
export function spread(samples) {
  return {
    median: median(samples),
    low: quantile(samples, 0.25),
    high: quantile(samples, 0.75),
  }
}

/**
 * Round by round, because the rounds are taken in turn: what slows the machine for a while slows
 * both sides of a pair.
 *
 * @param {readonly number[]} ours
 * @param {readonly number[]} theirs
 * @returns {Spread | null} of ours ÷ theirs; `null` when there is nothing to divide by
 */
export function ratio(ours, theirs) {
  const pairs = ours.slice(0, theirs.length).map((value, round) => value / Number(theirs[round]))
  return pairs.length > 0 && pairs.every(Number.isFinite) ? spread(pairs) : null
}

/**
 * @param {readonly number[]} samples of one and the same work
 * @returns {number} the distance of the quartiles as a share of the median
 */
export function unrest(samples) {
  const { median: middle, low, high } = spread(samples)
  return (high - low) / middle
}
