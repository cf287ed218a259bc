/**
 * The benchmarks' arithmetic: a wrong quartile would publish a wrong claim.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noiseOf } from '../../bench/noise.js'
import { median, quantile, ratio, spread, unrest } from '../../bench/stats.js'

test('a quantile is one of the samples, or lies between two of them', () => {
  assert.equal(quantile([4, 1, 3, 2, 5], 0.5), 3)
  assert.equal(quantile([4, 1, 3, 2], 0.5), 2.5)
  assert.equal(quantile([1, 2, 3, 4, 5], 0.95), 4.8)
  assert.equal(quantile([7], 0.95), 7)
  assert.deepEqual([quantile([2, 9, 4], 0), quantile([2, 9, 4], 1)], [2, 9])
})

test('a quantile of no samples is an error, not a figure', () => {
  assert.throws(() => median([]), RangeError)
})

test('the samples are left in their order, which makes the pairs', () => {
  const samples = [3, 1, 2]
  median(samples)
  assert.deepEqual(samples, [3, 1, 2])
})

test('a ratio is taken pair by pair, so that a slow round slows both sides', () => {
  const found = ratio([10, 100, 10], [20, 200, 20])
  assert.deepEqual(found, { median: 0.5, low: 0.5, high: 0.5 })
})

test('there is no ratio without a partner, nor to nothing', () => {
  assert.equal(ratio([1, 2], []), null)
  assert.equal(ratio([], [1]), null)
  assert.equal(ratio([1], [0]), null)
  assert.deepEqual(ratio([0], [4]), { median: 0, low: 0, high: 0 })
})

test('one round that is out of line moves neither the median nor the quartiles', () => {
  const calm = spread([10, 11, 10, 12, 11, 10, 11])
  assert.deepEqual(spread([10, 11, 10, 900, 11, 10, 11]), calm)
})

test('unrest is the distance of the quartiles as a share of the median', () => {
  assert.equal(unrest([10, 10, 10]), 0)
  assert.equal(unrest([8, 10, 12]), 0.2)
})

test('a quiet machine has nothing against its figures', () => {
  assert.deepEqual(
    noiseOf(
      [
        [40, 41, 40],
        [41, 40, 41],
      ],
      0.1,
    ),
    [],
  )
})

test('a machine that was busy before, that is restless, or that changes its pace is called noisy', () => {
  const busy = noiseOf([[40, 40, 40]], 1.4)
  const restless = noiseOf([[40, 60, 80]], 0)
  const changing = noiseOf(
    [
      [40, 40, 40],
      [60, 60, 60],
    ],
    0,
  )

  assert.match(busy.join(), /^140 % of the cores were busy/)
  assert.match(restless.join(), /quartiles .* 33 % .* apart/)
  assert.match(changing.join(), /1\.50 times as long/)
})
