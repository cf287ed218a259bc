/**
 * Beside the published mongo-migrate-kit 1.3.0, as in a rolling upgrade: it judges a lock by
 * `lockedAt` on its own clock, and knows no `expiresAt`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { api } from '../helpers/api.js'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { oneX } from '../helpers/one-x.js'
import { poll } from '../helpers/poll.js'

const migrations = { '1-slow.js': counting('slow', waitAtGate), '2-next.js': counting('next') }

/** @param {import('node:test').TestContext} t */
async function repo(t) {
  const { database, app } = await api(t, migrations)
  const began = () =>
    poll(async () => (await runsOf(database, 'slow')).ups > 0, { what: 'the body began' })
  return { database, app, began }
}

/** @param {import('../helpers/child.js').Child} child */
async function succeeded(child) {
  const { code, stdout, stderr } = await child.ended
  assert.equal(code, 0, stdout + stderr)
  return stdout + stderr
}

test('1.3.0 is refused while we hold the lock, and finds our work done afterwards', async (t) => {
  const { database, app, began } = await repo(t)
  const holder = app.mmk(['up'])
  await began()

  const refused = await oneX(app, ['up']).ended
  assert.equal(refused.code, 1, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /LOCK_ALREADY_HELD/)
  await openGate(database)
  await succeeded(holder)

  assert.match(await succeeded(oneX(app, ['up'])), /Nothing to migrate/)
  assert.deepEqual(await runsOf(database, 'slow'), { ups: 1, downs: 0 })
})

test('we are refused while 1.3.0 holds the lock, and a waiter finds its work done', async (t) => {
  const { database, app, began } = await repo(t)
  const holder = oneX(app, ['up'])
  await began()

  const refused = await app.mmk(['up']).ended
  assert.equal(refused.code, 3, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /LOCK_ALREADY_HELD/)
  const waiter = app.mmk(['up', '--wait'])
  await poll(() => waiter.stderr().includes('Waiting'), { what: 'we wait' })
  await openGate(database)

  await succeeded(holder)
  assert.match(await succeeded(waiter), /Nothing to migrate/)
  assert.deepEqual(await runsOf(database, 'slow'), { ups: 1, downs: 0 })
  assert.deepEqual(await runsOf(database, 'next'), { ups: 1, downs: 0 })
})

test('a live 1.3.0 holder that inherited an expiry in the past is not robbed', async (t) => {
  const { database, app, began } = await repo(t)
  const now = (await database.now()).getTime()
  const longAgo = new Date(now - 120_000)
  await holdLock(database, { lockedAt: longAgo, expiresAt: new Date(now - 110_000), beats: 3 })
  const holder = oneX(app, ['up'])
  await began()
  const lock = await database.lock()
  assert.ok(lock?.expiresAt < lock?.lockedAt, 'the expiry is that of the crashed one before it')

  const refused = await app.mmk(['up', '--lock-ttl', '1', '--wait=3000']).ended

  assert.equal(refused.code, 3, refused.stdout + refused.stderr)
  await openGate(database)
  await succeeded(holder)
  assert.deepEqual(await runsOf(database, 'slow'), { ups: 1, downs: 0 })
})

test('1.3.0 takes over from us when we have crashed, and we from it', async (t) => {
  const { database, app } = await repo(t)
  await openGate(database)
  const now = (await database.now()).getTime()
  const longAgo = new Date(now - 61_000)
  await holdLock(database, { lockedAt: longAgo, expiresAt: longAgo })
  await succeeded(oneX(app, ['up']))
  assert.equal((await runsOf(database, 'slow')).ups, 1)

  await app.write('migrations/3-more.js', counting('more'))
  const {
    expiresAt: _,
    v: __,
    leaseOwner: ___,
    acquiredAt: ____,
    ...theirs
  } = await holdLock(database)
  await database.db.collection('_mmk_locks').deleteMany({ host: theirs.host })
  await database.db
    .collection('_mmk_locks')
    .insertOne({ ...theirs, _id: /** @type {any} */ ('mmk_lock'), lockedAt: longAgo })
  await succeeded(app.mmk(['up']))

  assert.equal((await runsOf(database, 'more')).ups, 1)
  assert.equal((await runsOf(database, 'slow')).ups, 1)
})

test('a lock that 1.3.0 renewed half a minute ago is not taken, however short our TTL', async (t) => {
  const { database, app } = await repo(t)
  const now = (await database.now()).getTime()
  const _id = /** @type {any} */ ('mmk_lock')
  const theirs = { pid: 7, host: 'old', executedBy: 'asha', owner: 'a-uuid' }
  const lockedAt = new Date(now - 30_000)
  await database.db.collection('_mmk_locks').insertOne({ _id, ...theirs, lockedAt })

  const { code, stderr } = await app.mmk(['up', '--lock-ttl', '1']).ended

  assert.equal(code, 3, stderr)
  assert.match(stderr, /host old, pid 7, user asha/)
})
