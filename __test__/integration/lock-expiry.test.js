/**
 * When a lease ends, and who may say so: the server's clock and the lock document, nothing else.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { clockOff, noFaketime } from '../helpers/faketime.js'
import { poll } from '../helpers/poll.js'

const ttlMs = 1000
const upWithTtl = ['up', '--lock-ttl', `${ttlMs / 1000}`]

test('LEASE-01: a migration of many TTLs keeps its lock, and the waiter finds it done', async (t) => {
  const { database, app } = await api(t, { '1-slow.js': counting('slow', waitAtGate) })
  const holder = app.mmk(upWithTtl)
  await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })
  const waiter = app.mmk([...upWithTtl, '--wait=60000'])
  await poll(() => waiter.stderr().includes('Waiting'), { what: 'the waiter waits' })

  const { owner } = (await database.lock()) ?? {}
  const expiries = new Set()
  const began = performance.now()
  await poll(
    async () => {
      const lock = await database.lock()
      assert.equal(lock?.owner, owner)
      expiries.add(lock?.expiresAt.getTime())
      return performance.now() - began > 6 * ttlMs && expiries.size >= 6
    },
    { what: 'the expiry has moved six times in six TTLs', deadlineMs: 20_000 },
  )
  assert.deepEqual(
    [...expiries].sort((a, b) => a - b),
    [...expiries],
    'it only moves forward',
  )
  await openGate(database)

  assert.equal((await holder.ended).code, 0)
  const { code, stdout, stderr } = await waiter.ended
  assert.equal(code, 0, stdout + stderr)
  assert.equal((await runsOf(database, 'slow')).ups, 1)
})

test('LEASE-05: an expired lock is taken over although the server cleans nothing up, and no index makes it', async (t) => {
  const { database, app, config } = await api(t, { '1-slow.js': counting('slow', waitAtGate) })
  const monitor = (/** @type {boolean} */ ttlMonitorEnabled) =>
    database.db.client.db('admin').command({ setParameter: 1, ttlMonitorEnabled })
  const holder = app.mmk(upWithTtl)
  await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })
  holder.kill('SIGKILL')
  await openGate(database)

  await monitor(false)
  const next = runMigrations({ ...config, onLockHeld: 'wait' }).finally(() => monitor(true))

  assert.equal((await next).applied.length, 1)
  const indexes = await database.db.collection('_mmk_locks').indexes()
  assert.deepEqual(
    indexes.map(({ name }) => name),
    ['_id_'],
  )
})

test('LEASE-08: a lock that expired long ago is taken at once, however long our own TTL', async (t) => {
  const { database, app } = await api(t, { '1.js': counting('1') })
  const anHourAgo = new Date((await database.now()).getTime() - 3_600_000)
  await holdLock(database, { lockedAt: anHourAgo, expiresAt: anHourAgo, ttlMs: 120_000, beats: 1 })

  const began = performance.now()
  const { code, stdout, stderr, endedAt } = await app.mmk(['up', '--lock-ttl', '120']).ended

  assert.equal(code, 0, stdout + stderr)
  assert.ok(endedAt - began <= 8000, `it took ${endedAt - began} ms`)
  assert.match(stderr, /⚠ Took over the migration lock/)
})

for (const [mine, theirs] of /** @type {const} */ ([
  ['-10m', '+10m'],
  ['+10m', '-10m'],
])) {
  const title = `LEASE-02: a holder whose clock is ${mine} off keeps its lock from one who is ${theirs} off, and loses it only by dying`
  test(title, { skip: noFaketime }, async (t) => {
    const { database, app } = await api(t, { '1-slow.js': counting('slow', waitAtGate) })
    const holder = app.mmk(upWithTtl, { env: clockOff(mine) })
    await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })
    const { owner } = (await database.lock()) ?? {}
    await assertServerTimes(database)

    const waiter = app.mmk([...upWithTtl, '--wait'], { env: clockOff(theirs) })
    await poll(() => waiter.stderr().includes('Waiting'), { what: 'it waits' })
    const watched = performance.now()
    while (performance.now() - watched < 4 * ttlMs) {
      assert.equal((await database.lock())?.owner, owner)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    holder.kill('SIGKILL')
    const died = performance.now()
    await poll(async () => (await runsOf(database, 'slow')).ups === 2, { what: 'it takes over' })
    const took = performance.now() - died
    assert.ok(took <= ttlMs + 4000, `it took over after ${took} ms`)
    await assertServerTimes(database)
    await openGate(database)
    const { code, stdout, stderr } = await waiter.ended
    assert.equal(code, 0, stdout + stderr)
  })
}

/** @param {import('../helpers/database.js').Database} database */
async function assertServerTimes({ lock, now }) {
  const [document, serverTime] = [await lock(), await now()]
  for (const field of ['acquiredAt', 'lockedAt', 'expiresAt']) {
    const away = Math.abs(document?.[field].getTime() - serverTime.getTime())
    assert.ok(away <= 10_000, `${field} is ${away} ms away from the server's time`)
  }
}

test('LEASE-02: a process that believes to be ten minutes ahead writes the time of the server', async (t) => {
  const { database, app } = await api(t, { '1-slow.js': counting('slow', waitAtGate) })
  const preload = await app.write(
    'ahead.mjs',
    `const { now } = Date
     Date.now = () => now() + 600_000`,
  )
  const holder = app.mmk(upWithTtl, { env: { NODE_OPTIONS: `--import=${preload}` } })
  await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })

  await assertServerTimes(database)
  const refused = await app.mmk(['up', '--lock-ttl', '60']).ended
  assert.equal(refused.code, 3, refused.stdout + refused.stderr)
  await openGate(database)
  assert.equal((await holder.ended).code, 0)
})
