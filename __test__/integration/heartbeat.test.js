/**
 * The lock document as another client sees it while a run lasts, and when it ends.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { runMigrations } from 'mongo-migrate-kit'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const ttlMs = 2000

/** @param {import('node:test').TestContext} t */
async function waitingRun(t) {
  const database = await freshDatabase(t)
  const { migrationsDir } = await project(t, { '1-long.js': counting('long', waitAtGate) })
  const run = runMigrations({
    ...database.config,
    migrationsDir,
    logger: null,
    lockTTLSeconds: ttlMs / 1000,
  })
  // A test that fails before it awaits the run must not end in an unhandled rejection as well.
  run.catch(() => {})
  await poll(async () => (await runsOf(database, 'long')).ups === 1, { what: 'the body began' })
  return { database, run }
}

test('the lease is renewed at half its TTL while a body runs three TTLs', async (t) => {
  const { database, run } = await waitingRun(t)
  const renewals = new Set()
  const began = performance.now()
  while (performance.now() - began < 3 * ttlMs) {
    const lock = await database.lock()
    assert.ok(lock)
    assert.equal(lock.expiresAt - lock.lockedAt, ttlMs)
    renewals.add(lock.lockedAt.getTime())
    await delay(50)
  }
  await openGate(database)
  await run

  const times = [...renewals]
  const gaps = times.slice(1).map((time, index) => time - times[index])
  const median = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)]
  assert.ok(gaps.length >= 4, `renewed ${gaps.length} times`)
  assert.ok(Math.abs(median - ttlMs / 2) < ttlMs / 8, `gaps of ${gaps} ms`)
  assert.ok(
    gaps.every((gap) => gap < ttlMs),
    `gaps of ${gaps} ms`,
  )
})

test('a run says who holds the lock: host, process, user, since when, and a random owner', async (t) => {
  const { database, run } = await waitingRun(t)
  const lock = await database.lock()
  await openGate(database)
  await run

  assert.ok(lock)
  assert.equal(lock.pid, process.pid)
  assert.ok(lock.host && lock.executedBy)
  assert.match(lock.owner, /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
  assert.ok(lock.acquiredAt <= lock.lockedAt && lock.lockedAt < lock.expiresAt)
})

test("release leaves a lock that has become someone else's", async (t) => {
  const { database, run } = await waitingRun(t)
  const filter = { _id: /** @type {any} */ ('mmk_lock') }
  const theirs = { owner: 'someone-else', expiresAt: new Date(Date.now() + 60_000) }
  await database.db.collection('_mmk_locks').updateOne(filter, { $set: theirs })
  await openGate(database)

  await run.catch(() => {})

  assert.equal((await database.lock())?.owner, 'someone-else')
})
