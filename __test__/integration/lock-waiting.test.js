/**
 * `onLockHeld: 'wait'`: how a wait ends, on a replica set and on a standalone.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { failCommand } from '../helpers/fail-point.js'
import { poll } from '../helpers/poll.js'
import { replicaSet, standalone } from '../helpers/servers.js'
import { lockWatched } from '../helpers/watching.js'

const one = { '1-one.js': counting('one') }
/** Longer than any deadline here: who is still woken in time was not polling. */
const neverPoll = 600_000

/** @param {import('../helpers/database.js').Database} database */
const freeLock = ({ db }) => db.collection('_mmk_locks').deleteOne({ host: 'deploy-a' })

test('on a replica set a release wakes the waiter without polling', async (t) => {
  const { database, config, onEvent, eventsOf } = await api(t, one)
  await holdLock(database)
  const waiting = { ...config, onEvent, onLockHeld: 'wait', lockPollIntervalMs: neverPoll }
  const run = runMigrations(/** @type {any} */ (waiting))
  await lockWatched(database)

  await freeLock(database)
  const released = performance.now()
  const { applied, waited, waitedMs, metrics } = await run

  assert.ok(performance.now() - released <= 5000)
  assert.equal(applied.length, 1)
  assert.equal(waited, true)
  assert.ok(waitedMs > 0)
  assert.equal(metrics.lockWaitMs, waitedMs)
  assert.equal(eventsOf('lockWaiting')[0]?.holder.host, 'deploy-a')
})

test('a lock that is dropped with its collection wakes the waiter too', async (t) => {
  const { database, config } = await api(t, one)
  await holdLock(database)
  const options = { onLockHeld: 'wait', lockPollIntervalMs: neverPoll }
  const run = runMigrations(config, /** @type {any} */ (options))
  await lockWatched(database)

  await database.db.collection('_mmk_locks').drop()

  assert.equal((await run).applied.length, 1)
})

test('on a standalone a release is found by polling', async (t) => {
  const { database, config, onEvent, eventsOf } = await api(t, one, standalone)
  await holdLock(database)
  const run = runMigrations({ ...config, onEvent, onLockHeld: 'wait', lockPollIntervalMs: 100 })
  await poll(() => eventsOf('lockWaiting').length > 0, { what: 'it waits' })

  await freeLock(database)

  assert.equal((await run).applied.length, 1)
})

test('a waiter that can not open a change stream polls instead', async (t) => {
  const { database, config, onEvent, eventsOf } = await api(t, one)
  const namespace = `${database.name}._mmk_locks`
  const refusal = { failCommands: ['aggregate'], errorCode: 13, namespace }
  await failCommand(t, replicaSet, refusal)
  await holdLock(database)
  const run = runMigrations({ ...config, onEvent, onLockHeld: 'wait', lockPollIntervalMs: 100 })
  await poll(() => eventsOf('lockWaiting').length > 0, { what: 'it waits' })

  await freeLock(database)

  assert.equal((await run).applied.length, 1)
})

for (const [kind, uri] of Object.entries({
  'a replica set': replicaSet,
  'a standalone': standalone,
})) {
  describe(`on ${kind}`, () => {
    test('a waiter leaves without having taken the lock when the holder did its work', async (t) => {
      const { database, app, config, onEvent, eventsOf } = await api(
        t,
        { '1-one.js': counting('one', waitAtGate) },
        uri,
      )
      const holder = app.mmk(['up'])
      await poll(async () => (await runsOf(database, 'one')).ups === 1, { what: 'the body began' })
      const run = runMigrations({ ...config, onEvent, onLockHeld: 'wait' })
      await poll(() => eventsOf('lockWaiting').length > 0, { what: 'it waits' })

      await openGate(database)
      const { applied, upToDate, waited } = await run

      assert.equal((await holder.ended).code, 0)
      const summary = { applied, upToDate, waited }
      assert.deepEqual(summary, { applied: [], upToDate: true, waited: true })
      assert.deepEqual(eventsOf('lockAcquired'), [])
      assert.equal(eventsOf('lockWaiting')[0]?.holder.running, '1-one.js')
    })
  })
}

test('a wait time that someone set is a hard cap, however soon the lease ends', async (t) => {
  const { database, config } = await api(t, one)
  const now = await database.now()
  await holdLock(database, { expiresAt: new Date(now.getTime() + 5000) })

  const began = performance.now()
  const options = /** @type {const} */ ({ onLockHeld: 'wait', lockWaitTimeoutMs: 1500 })
  await assert.rejects(runMigrations({ ...config, ...options }), { code: 'LOCK_ALREADY_HELD' })

  const took = performance.now() - began
  assert.ok(took >= 1500 && took <= 4500, `it gave up after ${took} ms`)
  assert.deepEqual(await runsOf(database, 'one'), { ups: 0, downs: 0 })
})

test('the default wait outlasts its 30 seconds for a holder that has crashed', async (t) => {
  const { database, config } = await api(t, one)
  const now = await database.now()
  await holdLock(database, { expiresAt: new Date(now.getTime() + 33_000), ttlMs: 60_000, beats: 1 })

  const { applied, waitedMs } = await runMigrations({ ...config, onLockHeld: 'wait' })

  assert.equal(applied.length, 1)
  assert.ok(waitedMs >= 30_000, `it waited ${waitedMs} ms`)
})

test('REL-05: a wait time of zero runs when the lock is free and fails at once when it is held', async (t) => {
  const { database, app, config } = await api(t, one)
  const { owner } = await holdLock(database)
  const options = /** @type {const} */ ({ onLockHeld: 'wait', lockWaitTimeoutMs: 0 })

  const began = performance.now()
  await assert.rejects(runMigrations({ ...config, ...options }), { code: 'LOCK_ALREADY_HELD' })
  assert.ok(performance.now() - began <= 1000)
  const busy = await app.mmk(['up', '--wait=0']).ended
  assert.equal(busy.code, 3, busy.stdout + busy.stderr)
  assert.equal((await database.lock())?.owner, owner)

  await freeLock(database)
  assert.equal((await runMigrations({ ...config, ...options })).applied.length, 1)
  await app.write('migrations/2-two.js', counting('two'))
  const free = await app.mmk(['up', '--wait=0']).ended
  assert.equal(free.code, 0, free.stdout + free.stderr)
})

test('REL-03: a wait that runs out rejects with the holder, and what follows the await is not reached', async (t) => {
  const { database, app } = await api(t, one)
  await holdLock(database)
  await app.write(
    'app.js',
    `import { runMigrations } from 'mongo-migrate-kit'
     await runMigrations({ onLockHeld: 'wait', lockWaitTimeoutMs: 500 })
     console.log('serving')`,
  )

  const { code, stdout, stderr } = await app.node('app.js').ended

  assert.notEqual(code, 0)
  assert.doesNotMatch(stdout, /serving/)
  assert.match(stderr, /LOCK_ALREADY_HELD/)
  assert.match(stderr, /host deploy-a, pid 16152, user asha, since/)
})
