/**
 * The lock is given back however a migration ends, and a failure to do so hides nothing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { failCommand } from '../helpers/fail-point.js'
import { replicaSet } from '../helpers/servers.js'

/** @type {Record<string, { statement: string, reason: RegExp, failure?: import('mongodb').Document }>} */
const endings = {
  'a time-out of the server': {
    statement: `await db.collection('slow').insertOne({})`,
    reason: /operation exceeded time limit|MaxTimeMSExpired|failCommand/i,
    failure: { failCommands: ['insert'], errorCode: 50 },
  },
  'a connection that was closed': {
    statement: `await db.collection('slow').updateMany({}, { $set: { x: 1 } })`,
    reason: /connection .* closed|MongoNetwork/i,
    failure: { failCommands: ['update'], closeConnection: true },
  },
  'undefined that was thrown': { statement: 'throw undefined', reason: /undefined/ },
  'a text that was thrown': { statement: `throw 'just text'`, reason: /just text/ },
  'a rejection with null': { statement: 'await Promise.reject(null)', reason: /null/ },
}

for (const [ending, { statement, reason, failure }] of Object.entries(endings)) {
  test(`REL-08: the lock is free after ${ending}, and the entry says failed`, async (t) => {
    const { database, app } = await api(t, { '1-fails.js': counting('1', statement) })
    if (failure)
      await failCommand(t, replicaSet, { ...failure, namespace: `${database.name}.slow` })

    const { code, stdout, stderr } = await app.mmk(['up']).ended

    assert.equal(code, 1, stdout + stderr)
    assert.match(stderr, /MIGRATION_EXECUTION_FAILED/)
    assert.match(stderr, reason)
    assert.equal((await database.entry('1-fails.js'))?.status, 'failed')
    assert.equal(await database.lock(), null)
  })
}

/** @param {import('../helpers/database.js').Database} database */
const releaseFails = ({ name }) => ({
  failCommands: ['delete'],
  errorCode: 8000,
  namespace: `${name}._mmk_locks`,
})

test('a release that fails is warned about when the run was well', async (t) => {
  const { database, config, onEvent, eventsOf } = await api(t, { '1.js': counting('1') })
  await failCommand(t, replicaSet, releaseFails(database))

  const { applied } = await runMigrations({ ...config, onEvent })

  assert.equal(applied.length, 1)
  const codes = eventsOf('warning').map(({ code }) => code)
  assert.ok(codes.includes('LOCK_RELEASE_FAILED'), codes.join())
})

test('a release that fails does not hide why the migration failed', async (t) => {
  const source = `export function up() { throw new Error('seven is too many') }`
  const { database, config } = await api(t, { '1.js': source })
  await failCommand(t, replicaSet, releaseFails(database))

  await assert.rejects(runMigrations(config), (/** @type {any} */ error) => {
    assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
    assert.equal(error.cause.message, 'seven is too many')
    return true
  })
  assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })
})

test('a release whose connection breaks once is sent again', async (t) => {
  const { database, config } = await api(t, { '1.js': counting('1') })
  const { errorCode: _, ...once } = releaseFails(database)
  await failCommand(t, replicaSet, { ...once, closeConnection: true }, { times: 1 })

  await runMigrations(config)

  assert.equal(await database.lock(), null)
})
