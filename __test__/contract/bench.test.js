/**
 * Every measurement of `npm run bench` still works: a small run of each, all at once. What they find
 * here is no figure to quote.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { measurements } from '../../bench/measurements.js'
import { growthPlots } from '../../bench/plot.js'
import { openStage } from '../../bench/stage.js'
import { document } from '../../bench/table.js'
import { judge } from '../../bench/wants.js'
import { replicaSet, standalone } from '../helpers/servers.js'

/** @import { Result } from '../../bench/measurement.d.ts' */

const labels = { ours: 'mmk 2', oneX: 'mmk 1', migrateMongo: 'migrate-mongo' }

describe('the benchmarks', () => {
  /** @type {import('../../bench/stage.js').Stage} */
  let stage
  /** @type {Result[]} */
  const results = []
  before(async () => {
    stage = await openStage({ replicaSet, standalone })
  })
  after(() => stage.close())

  describe('measure', { concurrency: true }, () => {
    for (const { name, title, about, run } of measurements) {
      test(`${name}: every row has figures of ours, and finite ones`, async () => {
        const rows = await run({ stage, quick: true, rounds: 1 })
        results.push({ name, title, about, seconds: 0, rows })

        assert.ok(rows.length > 0)
        for (const { id, samples } of rows) {
          const all = Object.values(samples).flat()
          assert.ok(samples.ours ?? samples.node, id)
          assert.ok(
            all.length > 0 && all.every(Number.isFinite),
            `${id}: ${JSON.stringify(samples)}`,
          )
        }
      })
    }
  })

  test('a report of them has every measurement, a verdict on the wants, and the growth as a picture', () => {
    const facts = { date: '2026-11-30', machine: 'A', versions: 'B', noise: [], plots: [] }
    const text = document(facts, judge(results), results, labels)

    for (const { title } of measurements) assert.ok(text.includes(`## ${title}`), title)
    assert.match(text, /\| the addon \| ≤ [\d.]+ MB \| [\d.]+ MB \|/)
    const boot = /** @type {Result} */ (results.find(({ name }) => name === 'boot'))
    for (const { svg } of growthPlots(boot, labels)) {
      assert.match(svg, /^<svg /)
      for (const label of Object.values(labels)) assert.ok(svg.includes(label))
    }
  })
})
