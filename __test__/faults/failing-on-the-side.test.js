/**
 * A server that fails at what a run sends beside its steps: renewals, the watch of a waiter, the
 * clearing away; and what the command line makes of a failure.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { MongoClient } from 'mongodb'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { failCommand } from '../helpers/fail-point.js'
import { cameTo, faults, faultyRun } from '../helpers/faulty-run.js'
import * as sent from '../helpers/sent.js'
import { startWireProxy } from '../helpers/wire-proxy.js'

/** @import { Database } from '../helpers/database.js' */
/** @import { Kind, Outcome } from '../helpers/faulty-run.js' */

/** @type {Outcome} */
const done = { code: null, entries: ['applied', 'applied'], ups: [1, 1] }

/** Statement: until the lease has been renewed by this time, or it is lost. */
const untilRenewed = `
  for (let i = 0; i < 400 && !signal.aborted; i += 1) {
    const lock = await db.collection('_mmk_locks').findOne({ _id: 'mmk_lock' })
    if (lock.beats >= 3) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }`
const renewal = { command: 'findAndModify', matches: sent.renew }

for (const kind of /** @type {Kind[]} */ (Object.keys(faults))) {
  test(`a renewal ${kind}, twice, and the run keeps its lock`, async (t) => {
    const run = await faultyRun(
      t,
      renewal,
      faults[kind],
      { times: 2 },
      { ttl: 3, more: untilRenewed },
    )
    await cameTo(run, done)
    assert.ok(run.eventsOf('renewalFailed').length >= 1)
  })
}

test('a renewal that is not permitted any more ends the run when its lease does', async (t) => {
  const setting = { ttl: 2, more: untilRenewed }
  const run = await faultyRun(t, renewal, faults['is not permitted'], 'alwaysOn', setting)
  await cameTo(run, {
    code: 'LOCK_LOST',
    entries: ['running', null],
    ups: [1, 0],
    says: /lock was lost/,
    certainty: 'unknown',
    lockStays: true,
  })
})

for (const kind of /** @type {const} */ (['meets a stepping down', 'is not replicated in time'])) {
  test(`an arm whose commit ${kind} is tried until it is answered, and nothing runs before`, async (t) => {
    const target = { command: 'commitTransaction', matches: sent.armCommit }
    const run = await faultyRun(t, target, faults[kind], { times: 8 }, { ttl: 3 })
    await cameTo(run, done)
    assert.equal(run.eventsOf('lockArmed').length, 1)
  })
}

/** @param {Database} database an entry to be claimed by its version */
const reverted = ({ db }) =>
  db.collection('_mmk_migrations').insertOne({
    _id: /** @type {any} */ ('/1.js'),
    name: '1.js',
    status: 'reverted',
    version: 4,
    batch: 1,
  })

for (const kind of /** @type {Kind[]} */ (Object.keys(faults).slice(0, 4))) {
  test(`the claim of an entry that is there ${kind}, twice`, async (t) => {
    const target = { command: 'findAndModify', matches: sent.claim('1.js') }
    const arrange = { arrange: (/** @type {any} */ { database }) => reverted(database) }
    const run = await faultyRun(t, target, faults[kind], { times: 2 }, arrange)
    await cameTo(run, done)
    assert.equal((await run.database.entry('1.js'))?.version, 6, 'one claim and one settlement')
  })
}

const toReads = ['is answered by no primary', 'loses its connection', 'is not permitted']
for (const kind of /** @type {Kind[]} */ (toReads)) {
  test(`the watch of a waiter ${kind}, and it looks for itself`, async (t) => {
    const target = { command: 'aggregate', matches: sent.watch }
    const run = await faultyRun(t, target, faults[kind], 'alwaysOn', {
      arrange: ({ database }) => holdLock(database),
      meanwhile: ({ database }) => database.db.collection('_mmk_locks').deleteMany({}),
    })
    await cameTo(run, done)
  })
}

/**
 * A dead run that is on the register, and has left a transaction open.
 * @param {Database} database
 */
async function openTransaction(database) {
  const runId = randomUUID()
  const client = new MongoClient(database.uri, { appName: `mmk/${runId}` })
  const session = client.startSession()
  session.startTransaction()
  await client.db(database.name).collection('kept').insertOne({ by: 'the dead' }, { session })
  const unsettled = [{ runId, changelog: '_mmk_migrations', at: new Date() }]
  const fence = { _id: /** @type {any} */ ('mmk_fence'), token: 1, unsettled }
  await database.db.collection('_mmk_locks').insertOne(fence)
  return client
}

for (const kind of /** @type {const} */ (['is answered by no primary', 'is not permitted'])) {
  test(`the end of a dead run’s transaction ${kind}, twice, and it is ended all the same`, async (t) => {
    const target = { command: 'killSessions', matches: sent.endSession }
    /** @type {MongoClient[]} */
    const clients = []
    try {
      const run = await faultyRun(
        t,
        target,
        faults[kind],
        { times: 2 },
        {
          arrange: async ({ database }) => clients.push(await openTransaction(database)),
        },
      )
      await cameTo(run, done)
      assert.equal(run.eventsOf('orphansFound').length, 1)
      assert.equal(await run.database.db.collection('kept').countDocuments(), 0)
    } finally {
      // Its transaction would keep the database from being dropped.
      for (const client of clients) await client.close()
    }
  })
}

test('the command line says what is unknown, and ends with 5', async (t) => {
  const { database, app } = await api(t, { '1.js': counting('1'), '2.js': counting('2') })
  const proxy = await startWireProxy(t, database.uri)
  const coming = proxy.hold('before', sent.advance('1.js'))
  const child = app.mmk(['up'], { env: { MMK_URI: proxy.uri } })
  const { appName, release } = await coming
  const fault = { ...faults['is not replicated in time'], failCommands: ['update'], appName }
  const end = await failCommand(t, database.uri, fault)
  try {
    release()
    const { code, stdout, stderr } = await child.ended
    assert.equal(code, 5, stdout + stderr)
    assert.match(stderr, /OUTCOME_UNKNOWN: .*1\.js/)
    assert.match(stderr, /mmk status/)
    assert.doesNotMatch(stdout, /Applied.*2\.js/)
  } finally {
    await end()
  }
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
})
