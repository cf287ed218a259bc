/**
 * Random numbers from a seed: the same seed draws the same faults, though not the same instants at
 * which processes meet them.
 */

/**
 * @typedef {object} Random
 * @property {() => number} next from 0 to 1, exclusive
 * @property {(low: number, high: number) => number} between
 * @property {(low: number, high: number) => number} integer both ends included
 * @property {(probability: number) => boolean} chance
 * @property {<T>(list: readonly T[]) => T} pick
 * @property {<K extends string>(weights: Readonly<Partial<Record<K, number>>>) => K} weighted
 */

/**
 * @param {string | number} seed
 * @returns {Random}
 */
export function createRandom(seed) {
  let state = hash(String(seed))
  // Mulberry32: small, and good enough to draw faults.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  /** @type {Random['between']} */
  const between = (low, high) => low + next() * (high - low)
  /** @type {Random['integer']} */
  const integer = (low, high) => Math.floor(between(low, high + 1))
  return {
    next,
    between,
    integer,
    chance: (probability) => next() < probability,
    pick: (list) => list[integer(0, list.length - 1)],
    weighted: (weights) => drawn(weights, next()),
  }
}

/**
 * @template {string} K
 * @param {Readonly<Partial<Record<K, number>>>} weights
 * @param {number} fraction of their sum
 * @returns {K}
 */
function drawn(weights, fraction) {
  const entries = /** @type {[K, number][]} */ (Object.entries(weights))
  let left = fraction * entries.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [name, weight] of entries) {
    left -= weight
    if (left < 0) return name
  }
  throw new RangeError('There is nothing to draw from')
}

/** @param {string} text FNV-1a */
function hash(text) {
  let value = 0x811c9dc5
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193)
  return value
}
