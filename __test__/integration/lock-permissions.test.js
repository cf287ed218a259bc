/**
 * Users that may do little. The server is one of our own, since the shared ones ask nobody's name.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pendingMigrations, runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { startAuthServer } from '../helpers/auth-server.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'

const one = { '1.js': counting('1') }
const writing = ['find', 'insert', 'update', 'remove']

/** @param {string} db @param {Record<string, string[]>} actions by collection */
const privileges = (db, actions) =>
  Object.entries(actions).map(([collection, granted]) => ({
    resource: { db, collection },
    actions: granted,
  }))

test('a user without the right to watch polls for a release, and runs as any other', async (t) => {
  const server = await startAuthServer(t)
  const { database, config, onEvent, eventsOf } = await api(t, one, server.uri)
  const actions = { _mmk_locks: writing, _mmk_migrations: writing, runs: writing }
  const uri = await server.userWith(database.name, privileges(database.name, actions))
  await holdLock(database)
  const options = /** @type {const} */ ({ onLockHeld: 'wait', lockPollIntervalMs: 100 })
  const run = runMigrations({ ...config, ...options, uri, onEvent })
  await poll(() => eventsOf('lockWaiting').length > 0, { what: 'it waits' })

  await database.db.collection('_mmk_locks').deleteMany({ host: 'deploy-a' })

  assert.equal((await run).applied.length, 1)
  assert.equal((await runsOf(database, '1')).ups, 1)
  assert.equal(await database.lock(), null)
})

test('LOG-02: a user who may only read sees what is pending, and creates nothing', async (t) => {
  const server = await startAuthServer(t)
  const { database, config } = await api(t, one, server.uri)
  const actions = { _mmk_locks: ['find'], _mmk_migrations: ['find'] }
  const uri = await server.userWith(database.name, privileges(database.name, actions))

  const rows = await pendingMigrations({ ...config, uri })

  assert.deepEqual(
    rows.map(({ file }) => file),
    ['1.js'],
  )
  assert.deepEqual(await database.db.listCollections().toArray(), [])
})

test('a user who may not write the lock is told so before any migration ran', async (t) => {
  const server = await startAuthServer(t)
  const { database, config } = await api(t, one, server.uri)
  const actions = { _mmk_locks: ['find'], _mmk_migrations: writing, runs: writing }
  const uri = await server.userWith(database.name, privileges(database.name, actions))

  await assert.rejects(runMigrations({ ...config, uri }), (/** @type {any} */ error) => {
    assert.match(error.message, /^taking the lock: not authorized on /)
    assert.match(error.hint, /roles/)
    assert.doesNotMatch(error.message, /limited:limited/)
    return true
  })

  assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })
})
