/**
 * Transactions that the server gives up, at each of our commands: what is tried again, for how long,
 * and what is true of the database in the end.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { attempting } from '../helpers/attempts.js'
import { failCommand } from '../helpers/fail-point.js'

const transient = { errorLabels: ['TransientTransactionError'] }
const unreplicated = { code: 64, codeName: 'WriteConcernFailed', errmsg: 'waiting timed out' }
const raiseFence = `await db.collection('_mmk_locks').updateOne({ _id: 'mmk_fence' }, { $inc: { token: 1 } })`

/** @typedef {import('mongodb').Document} Document */

/** @type {Record<string, (name: string) => Document>} twice, and no more: by the body's client */
const givenUp = {
  "the body's insert conflicts": (name) => ({
    ...{ failCommands: ['insert'], namespace: `${name}.seen`, errorCode: 112, ...transient },
  }),
  "the body's insert loses its connection": (name) => ({
    ...{ failCommands: ['insert'], namespace: `${name}.seen`, closeConnection: true },
  }),
  'the record finds the transaction gone': (name) => ({
    ...{ failCommands: ['update'], namespace: `${name}._mmk_migrations` },
    ...{ errorCode: 251, ...transient },
  }),
  'the commit finds the transaction gone': () => ({
    ...{ failCommands: ['commitTransaction'], errorCode: 251, ...transient },
  }),
}

for (const [kind, fault] of Object.entries(givenUp)) {
  test(`when ${kind} twice, the third attempt leaves its effects, and only its own`, async (t) => {
    const { database, attempts, config, onEvent, eventsOf, seen, failing } = await attempting(t)
    failing(fault(database.name), { times: 2 })

    const { applied } = await runMigrations({ ...config, onEvent })

    assert.equal(attempts.count, 3)
    assert.deepEqual(await seen(), [3])
    assert.deepEqual([applied[0]?.attempts, applied[0]?.transaction], [3, true])
    const retried = eventsOf('transactionRetried')
    assert.deepEqual(
      retried.map(({ name, attempt }) => [name, attempt]),
      [
        ['1-body.js', 2],
        ['1-body.js', 3],
      ],
    )
    const entry = await database.entry('1-body.js')
    assert.deepEqual([entry?.status, entry?.version], ['applied', 2])
    assert.equal(await database.lock(), null)
  })
}

test('a conflict on the fence that is not a later run is tried again like any other', async (t) => {
  const { database, attempts, config, seen, failing } = await attempting(t)
  const namespace = `${database.name}._mmk_locks`
  // The second is the question, outside, whether a later run has begun.
  failing({ failCommands: ['update'], namespace, errorCode: 112, ...transient }, { times: 2 })

  await runMigrations(config)

  assert.equal(attempts.count, 2)
  assert.deepEqual(await seen(), [2])
  assert.equal((await database.entry('1-body.js'))?.status, 'applied')
})

test('a passing error is not tried again once a later run has begun', async (t) => {
  const after = `
    ${raiseFence}
    throw Object.assign(new Error('passing'), { errorLabels: ['TransientTransactionError'] })`
  const { database, attempts, config, onEvent, eventsOf, seen } = await attempting(t, { after })

  await assert.rejects(runMigrations({ ...config, onEvent }), { code: 'LOCK_LOST' })

  assert.equal(attempts.count, 1)
  assert.deepEqual(eventsOf('transactionRetried'), [])
  assert.deepEqual(await seen(), [])
  assert.equal((await database.entry('1-body.js'))?.status, 'running')
})

test('nothing is tried again once the lock is lost', async (t) => {
  const { database, attempts, config, onEvent, events, seen, failing } = await attempting(t)
  const namespace = `${database.name}.seen`
  failing({ failCommands: ['insert'], namespace, errorCode: 112, ...transient })
  const unlock = (/** @type {import('mongo-migrate-kit').MmkEvent} */ event) => {
    onEvent(event)
    if (event.type !== 'transactionRetried' || event.attempt !== 3) return
    void database.db.collection('_mmk_locks').deleteOne({ _id: /** @type {any} */ ('mmk_lock') })
  }

  const run = runMigrations({ ...config, lockTTLSeconds: 2, onEvent: unlock })

  await assert.rejects(run, { code: 'LOCK_LOST' })
  const begun = attempts.count
  const lost = events.findIndex(({ type }) => type === 'leaseLost')
  assert.ok(lost > 0)
  assert.ok(!events.slice(lost + 2).some(({ type }) => type === 'transactionRetried'))
  assert.deepEqual(await seen(), [])
  assert.equal(attempts.count, begun)
})

test('a transaction that is given up for ever ends as a failed migration, in bounded time', async (t) => {
  const { database, attempts, config, seen, failing } = await attempting(t)
  const namespace = `${database.name}.seen`
  failing({ failCommands: ['insert'], namespace, errorCode: 112, ...transient })

  const error = await runMigrations({ ...config, transactionRetryTimeoutMs: 200 }).catch((e) => e)

  assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
  assert.equal(error.cause.code, 112)
  assert.ok(attempts.count > 1)
  assert.equal(error.context.attempts, attempts.count)
  assert.match(error.hint, new RegExp(`${attempts.count} attempts.*transactionRetryTimeoutMs`))
  assert.deepEqual(await seen(), [])
  const entry = await database.entry('1-body.js')
  assert.equal(entry?.status, 'failed')
  assert.equal(entry?.error.name, 'MongoServerError')
  assert.equal(await database.lock(), null)
})

/** @type {Record<string, Document>} of a commit: with the driver's own second try, two are one */
const unanswered = {
  'its connection is cut': { closeConnection: true },
  'its majority is slow': { writeConcernError: unreplicated },
}

for (const [kind, fault] of Object.entries(unanswered)) {
  test(`a commit is asked again when ${kind}, and the body is not`, async (t) => {
    const { database, attempts, config, seen, failing } = await attempting(t)
    failing({ failCommands: ['commitTransaction'], ...fault }, { times: 3 })

    const { applied } = await runMigrations(config)

    assert.equal(attempts.count, 1)
    assert.equal(applied[0]?.status, 'applied')
    assert.deepEqual(await seen(), [1])
    assert.equal((await database.entry('1-body.js'))?.status, 'applied')
  })

  test(`a commit that gets no answer at all because ${kind} is of unknown outcome, and heals`, async (t) => {
    const { database, attempts, config, seen, failing } = await attempting(t)
    failing({ failCommands: ['commitTransaction'], ...fault })

    const run = runMigrations({ ...config, transactionRetryTimeoutMs: 200 })

    await assert.rejects(run, { code: 'OUTCOME_UNKNOWN', certainty: 'unknown' })
    await failCommand(t, database.uri, { failCommands: ['ping'] }, { times: 1 })
    const { upToDate } = await runMigrations(config)
    // Cut off, the first commit never arrived; with a slow majority it did.
    assert.equal(upToDate, 'writeConcernError' in fault)
    assert.deepEqual(await seen(), [attempts.count])
    assert.equal((await database.entry('1-body.js'))?.status, 'applied')
  })
}

test('a commit that did not arrive leaves no transaction open, also in a run without a lock', async (t) => {
  const { database, config, failing } = await attempting(t)
  failing({ failCommands: ['commitTransaction'], closeConnection: true })

  const run = runMigrations({ ...config, noLock: true, transactionRetryTimeoutMs: 100 })

  await assert.rejects(run, { code: 'OUTCOME_UNKNOWN' })
  const open = [
    { $currentOp: { allUsers: true, idleSessions: true } },
    { $match: { type: 'idleSession', transaction: { $exists: true } } },
  ]
  const admin = database.db.client.db('admin')
  assert.deepEqual(await admin.aggregate(open).toArray(), [])
})

test('TXN-05: under a steady writer the body runs more than once, its effects count once', async (t) => {
  const conflicting = `
    await db.collection('stock').findOne({ _id: 1 }, { session })
    if (attempt < 4) await db.collection('stock').updateOne({ _id: 1 }, { $inc: { sold: 1 } })
    await db.collection('stock').updateOne({ _id: 1 }, { $inc: { checked: 1 } }, { session })`
  const { database, attempts, config, onEvent, eventsOf, seen } = await attempting(t, {
    before: conflicting,
  })
  const stock = database.db.collection('stock')
  await stock.insertOne({ _id: /** @type {any} */ (1), sold: 0, checked: 0 })

  const { applied } = await runMigrations({ ...config, onEvent })

  assert.deepEqual([attempts.count, applied[0]?.attempts], [4, 4])
  assert.deepEqual(await seen(), [4])
  assert.deepEqual(await stock.findOne(), { _id: 1, sold: 3, checked: 1 })
  assert.equal(eventsOf('transactionRetried').length, 3)
})
