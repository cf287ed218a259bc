/**
 * From one run to the next: how a release reaches the waiter. The figures are printed, not asserted:
 * speed is judged by the benchmarks.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { lockWatched } from '../helpers/watching.js'

const rounds = 20

/**
 * @param {import('node:test').TestContext} t
 * @returns {Promise<number>} ms from the acknowledged release to the waiter's first body
 */
async function handOver(t) {
  const { database, config } = await api(t, { '1.js': counting('1') })
  await holdLock(database)
  let began = 0
  const run = runMigrations({
    ...config,
    onLockHeld: 'wait',
    // Longer than the test: only the change stream can be what wakes it.
    lockPollIntervalMs: 600_000,
    onEvent: ({ type }) => {
      if (type === 'migrationStarted') began = performance.now()
    },
  })
  await lockWatched(database)
  await database.db.collection('_mmk_locks').deleteOne({ host: 'deploy-a' })
  const released = performance.now()
  await run
  return began - released
}

test(`a release reaches the waiter's first body in each of ${rounds} rounds without polling`, async (t) => {
  /** @type {number[]} */
  const spans = []
  for (let round = 0; round < rounds; round += 1) {
    await t.test(`round ${round + 1}`, async (each) => {
      spans.push(await handOver(each))
    })
  }
  spans.sort((a, b) => a - b)

  const [p50, p95] = [spans[rounds / 2], spans[Math.floor(rounds * 0.95)]]
  t.diagnostic(`release to first body: p50 ${p50?.toFixed(1)} ms, p95 ${p95?.toFixed(1)} ms`)
  assert.ok(Number(p95) <= 5000, `p95 ${p95} ms`)
})
