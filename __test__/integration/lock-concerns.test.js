/**
 * What a URI or a server says about write concerns, retries and transactions.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { MongoClient } from 'mongodb'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { failCommand, failPoint } from '../helpers/fail-point.js'
import { ownServer } from '../helpers/own-server.js'
import { endProfile, profiled, startProfile } from '../helpers/profile.js'
import { replicaSet } from '../helpers/servers.js'

const one = { '1.js': counting('1') }
const ours = ['_mmk_locks', '_mmk_migrations']

/** @type {Record<string, string>} */
const concerns = {
  'w=0': 'w=0',
  'a wtimeout of a millisecond': 'w=1&wtimeoutMS=1',
  'more members than there are': 'w=3&wtimeoutMS=2000',
  'journal=false': 'journal=false',
}

for (const [kind, option] of Object.entries(concerns)) {
  test(`CONC-01: a URI that asks for ${kind} weakens none of our own writes and hangs nothing`, async (t) => {
    const { database, config } = await api(t, one)
    await startProfile(database)
    const began = performance.now()
    const run = runMigrations({ ...config, uri: `${replicaSet}&${option}` })
    const failure = await run.then(
      () => null,
      (error) => error,
    )
    await endProfile(database)

    assert.ok(performance.now() - began <= 20_000)
    // The body's own writes are the user's: with w=3 on one member they fail, and say so.
    if (failure) assert.equal(failure.code, 'MIGRATION_EXECUTION_FAILED')
    else assert.equal((await runsOf(database, '1')).ups, 1)
    assert.equal(await database.lock(), null)
    const writes = await profiled(database, { 'command.writeConcern': { $exists: true } })
    const own = writes.filter(({ ns }) => ours.some((name) => ns.endsWith(name)))
    assert.ok(own.length > 0)
    assert.deepEqual(
      own.map(({ command }) => command.writeConcern.w).filter((w) => w !== 'majority'),
      [],
    )
  })
}

test('CONC-03: with retryWrites=false in the URI no write of ours or of a body is a retryable one', async (t) => {
  const { database, config } = await api(t, one)
  await startProfile(database)

  await runMigrations({ ...config, uri: `${replicaSet}&retryWrites=false` })

  await endProfile(database)
  const numbered = await profiled(database, { 'command.txnNumber': { $exists: true } })
  const outside = numbered.filter(({ command }) => command.autocommit !== false)
  assert.deepEqual(
    outside.map(({ ns, op, command }) => [ns, op, Object.keys(command)[0]]),
    [],
  )
})

test('CONC-05: with a majority that is out of reach a run ends in bounded time and says why', async (t) => {
  const server = await ownServer(t, { members: 3 })
  const primary = new URL(`http://${await primaryOf(server.direct[0] ?? '')}`).port
  // Members that are up but don't replicate: the primary stays one, and no majority has its writes.
  for (const uri of server.direct.filter((each) => !each.includes(`:${primary}/`))) {
    await failPoint(t, uri, 'stopReplProducer')
  }
  const { database, config } = await api(t, one, server.uri)

  const began = performance.now()
  const run = runMigrations({ ...config, lockTTLSeconds: 2 })
  await assert.rejects(run, (/** @type {any} */ error) => {
    assert.notEqual(error.code, 'INTERNAL')
    t.diagnostic(`${error.code}: ${error.message}`)
    return true
  })

  assert.ok(performance.now() - began <= 60_000)
  assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })
})

/** @param {string} uri */
async function primaryOf(uri) {
  const client = new MongoClient(uri)
  try {
    return (await client.db('admin').command({ hello: 1 })).primary
  } finally {
    await client.close()
  }
}

for (const errorCode of [20, 263]) {
  test(`CONC-06: a server that refuses transactions with ${errorCode} is refused before any migration ran`, async (t) => {
    const { database, config } = await api(t, one)
    await failCommand(t, replicaSet, { failCommands: ['commitTransaction'], errorCode })

    await assert.rejects(runMigrations(config), (/** @type {any} */ error) => {
      assert.notEqual(error.code, 'INTERNAL')
      return true
    })

    assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })
    assert.deepEqual(await database.entries(), [])
    assert.equal(await database.lock(), null)
  })
}
