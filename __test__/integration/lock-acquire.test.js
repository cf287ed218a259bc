/**
 * Asking for the lock while the server is slow, or its answer is lost or odd.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { failCommand } from '../helpers/fail-point.js'
import { endProfile, profiled, startProfile } from '../helpers/profile.js'
import { startProxy } from '../helpers/proxy.js'
import { replicaSet } from '../helpers/servers.js'

const one = { '1-one.js': counting('one') }
const commands = ['find', 'findAndModify', 'insert', 'update']

for (let round = 1; round <= 5; round += 1) {
  test(`ACQ-02: ten runs that meet a slow lock collection have one holder at a time (${round} of 5)`, async (t) => {
    const { database, config } = await api(t, one)
    const slow = { failCommands: commands, blockConnection: true, blockTimeMS: 400 }
    const namespace = `${database.name}._mmk_locks`
    const end = await failCommand(t, replicaSet, { ...slow, namespace })
    await startProfile(database)

    const waiting = { ...config, onLockHeld: /** @type {const} */ ('wait') }
    const all = Array.from({ length: 10 }, () => runMigrations(waiting))
    const summaries = await Promise.all(all)
    await end()
    await endProfile(database)

    assert.equal((await runsOf(database, 'one')).ups, 1)
    assert.equal(summaries.flatMap(({ applied }) => applied).length, 1)
    const claims = await profiled(database, {
      ns: namespace,
      'command.findAndModify': '_mmk_locks',
    })
    const acquires = claims.filter(
      ({ command }) => command.upsert && command.query._id === 'mmk_lock',
    )
    assert.ok(acquires.length >= 1)
    const keys = acquires.map(({ command }) => Object.keys(command.query).join())
    assert.deepEqual([...new Set(keys)], ['_id'], 'each is one conditional write, keyed on _id')
  })
}

/** @param {string} command @param {string} namespace */
const duplicateKey = (command, namespace) => ({
  failCommands: [command],
  errorCode: 11000,
  errorExtraInfo: { keyPattern: { _id: 1 }, keyValue: { _id: 'mmk_lock' } },
  namespace,
})

for (const command of ['findAndModify', 'insert', 'update']) {
  test(`ACQ-04: a duplicate key that ${command} reports once never reaches the user of a free lock`, async (t) => {
    const { database, app } = await api(t, one)
    const failure = duplicateKey(command, `${database.name}._mmk_locks`)
    await failCommand(t, replicaSet, failure, { times: 1 })

    const { code, stdout, stderr } = await app.mmk(['up']).ended

    assert.equal(code, 0, stdout + stderr)
    assert.doesNotMatch(stdout + stderr, /E11000|11000/)
    assert.equal((await runsOf(database, 'one')).ups, 1)
  })

  test(`ACQ-04: a duplicate key that ${command} reports once is a busy lock when it is held`, async (t) => {
    const { database, app } = await api(t, one)
    await holdLock(database)
    const failure = duplicateKey(command, `${database.name}._mmk_locks`)
    await failCommand(t, replicaSet, failure, { times: 1 })

    const { code, stdout, stderr } = await app.mmk(['up']).ended

    assert.equal(code, 3, stdout + stderr)
    assert.match(stderr, /LOCK_ALREADY_HELD/)
    assert.doesNotMatch(stdout + stderr, /E11000|11000/)
  })
}

for (const [kind, option] of Object.entries({
  'with retryable writes': '',
  'with retryWrites=false': '&retryWrites=false',
})) {
  test(`ACQ-05: a run whose acquire was carried out but not answered recognises itself, ${kind}`, async (t) => {
    const { database, app } = await api(t, one)
    const proxy = await startProxy(t, replicaSet)
    const dropped = proxy.dropReplyTo('findAndModify', '_mmk_locks')
    const env = { MMK_URI: proxy.uri + option }

    const began = performance.now()
    const { code, stdout, stderr, endedAt } = await app.mmk(['up'], { env }).ended
    await dropped

    assert.equal(code, 0, stdout + stderr)
    assert.ok(endedAt - began <= 10_000, 'it did not wait for its own lease of a minute')
    assert.equal((await runsOf(database, 'one')).ups, 1)
    assert.equal(await database.lock(), null)
  })
}

test('LEASE-06: a server that refuses what the lock needs is named before any migration ran', async (t) => {
  const { database, config } = await api(t, one)
  const namespace = `${database.name}._mmk_locks`
  await failCommand(t, replicaSet, { failCommands: ['findAndModify'], errorCode: 9, namespace })

  await assert.rejects(runMigrations(config), (/** @type {any} */ error) => {
    assert.notEqual(error.code, 'INTERNAL')
    assert.notEqual(error.code, 'LOCK_ALREADY_HELD')
    return true
  })

  assert.deepEqual(await runsOf(database, 'one'), { ups: 0, downs: 0 })
  assert.deepEqual(await database.entries(), [])
})
