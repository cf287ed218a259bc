/**
 * The fence: what makes a transaction of an older run fail once a newer one has begun, whatever the
 * older believes of its lock.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { lostWarning } from '../helpers/lost.js'
import { poll } from '../helpers/poll.js'

/** Statement: do to the fence what a later run does first. The lock itself stays as it is. */
const raiseFence = `await db.collection('_mmk_locks').updateOne({ _id: 'mmk_fence' }, { $inc: { token: 1 } })`

/** @param {string} statements */
const transactional = (statements) => `
export const useTransaction = true
export async function up({ db, session }) {
  await db.collection('seen').insertOne({ _id: 1 }, { session })
  ${statements}
}`

/** @param {import('../helpers/database.js').Database} database */
const seen = ({ db }) => db.collection('seen').countDocuments()

test('a transactional body is not committed when a later run has begun, and its entry is not applied', async (t) => {
  const { database, config, onEvent, eventsOf } = await api(t, {
    '1-fenced.js': transactional(raiseFence),
    '2-next.js': counting('2'),
  })

  await assert.rejects(runMigrations({ ...config, onEvent }), { code: 'LOCK_LOST' })

  assert.equal(await seen(database), 0)
  assert.equal((await database.entry('1-fenced.js'))?.status, 'running')
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
  assert.deepEqual(eventsOf('migrationFinished'), [])
})

test('a holder that froze inside its transaction commits nothing after another has taken over', async (t) => {
  const freezeOnce = `
    const { ups } = await db.collection('runs').findOneAndUpdate(
      { _id: '1' }, { $inc: { ups: 1 } }, { upsert: true, returnDocument: 'after' })
    await db.collection('seen').insertOne({ _id: 'run ' + ups }, { session })
    if (ups === 1) process.kill(process.pid, 'SIGSTOP')`
  const { database, app } = await api(t, { '1-freezes.js': transactional(freezeOnce) })
  const zombie = app.mmk(['up', '--lock-ttl', '1'])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'it froze' })

  const next = await app.mmk(['up', '--lock-ttl', '1', '--wait']).ended
  assert.equal(next.code, 0, next.stdout + next.stderr)
  const entry = await database.entry('1-freezes.js')
  zombie.kill('SIGCONT')
  const { code, stdout, stderr } = await zombie.ended

  assert.equal(code, 5, stdout + stderr)
  assert.match(stderr, lostWarning)
  const documents = await database.db
    .collection('seen')
    .find({}, { sort: { _id: 1 } })
    .toArray()
  assert.deepEqual(
    documents.map(({ _id }) => String(_id)),
    ['1', 'run 2'],
  )
  assert.deepEqual(await database.entry('1-freezes.js'), entry)
  assert.equal(entry?.status, 'applied')
})

/** @param {string} beforeFence statements in the open transaction, before the body calls `fence` */
const ownTransaction = (beforeFence) => `
export async function up({ db, client, fence }) {
  await client.withSession(async (session) => {
    session.startTransaction()
    await db.collection('seen').insertOne({ _id: 1 }, { session })
    ${beforeFence}
    await fence(session)
    await session.commitTransaction()
  })
}`

test("fence lets a body's own transaction commit while its run is the latest", async (t) => {
  const { database, config } = await api(t, { '1-own.js': ownTransaction('') })

  await runMigrations(config)

  assert.equal(await seen(database), 1)
})

test("fence makes a body's own transaction fail once a later run has begun", async (t) => {
  const { database, config } = await api(t, { '1-own.js': ownTransaction(raiseFence) })

  await assert.rejects(runMigrations(config), (/** @type {any} */ error) => {
    assert.ok(error.code === 'LOCK_LOST' || error.cause?.code === 'LOCK_LOST', error.stack)
    return true
  })

  assert.equal(await seen(database), 0)
  assert.notEqual((await database.entry('1-own.js'))?.status, 'applied')
})

test('fence wants a session with an open transaction', async (t) => {
  const source = `export const up = ({ client, fence }) => client.withSession((session) => fence(session))`
  const { config } = await api(t, { '1-plain.js': source })

  await assert.rejects(runMigrations(config), (/** @type {any} */ error) => {
    assert.equal(error.cause?.code ?? error.code, 'INVALID_ARGUMENT')
    return true
  })
})

test('fencingToken rises with every run, and is the one that the fence keeps', async (t) => {
  const noting = `export async function up({ db, name, fencingToken }) {
    await db.collection('tokens').insertOne({ _id: name, fencingToken })
  }`
  const { database, app, config, onEvent, eventsOf } = await api(t, { '1.js': noting })
  await runMigrations({ ...config, onEvent })
  await app.write('migrations/2.js', noting)
  await runMigrations({ ...config, onEvent })
  await app.write('migrations/3.js', noting)
  await runMigrations({ ...config, onEvent, noLock: true })

  const tokens = await database.db.collection('tokens').find().sort({ _id: 1 }).toArray()
  const [first, second, unlocked] = tokens.map(({ fencingToken }) => fencingToken)
  assert.ok(Number(second) > Number(first), `${second} after ${first}`)
  assert.equal(unlocked, null)
  const fence = await database.db.collection('_mmk_locks').findOne({ token: { $exists: true } })
  assert.equal(Number(fence?.token), Number(second))
  assert.deepEqual(
    eventsOf('lockArmed').map(({ fencingToken }) => fencingToken),
    [Number(first), Number(second)],
  )
})

test('a run that has settled leaves nothing on the register of unsettled ones', async (t) => {
  const { database, config } = await api(t, { '1.js': counting('1') })

  await runMigrations(config)

  const fence = await database.db.collection('_mmk_locks').findOne({ token: { $exists: true } })
  assert.deepEqual(fence?.unsettled ?? [], [])
})

test('a run is on the register of unsettled ones from before its first body', async (t) => {
  const { database, app } = await api(t, { '1.js': counting('1', waitAtGate) })
  const run = app.mmk(['up'])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })

  const fence = await database.db.collection('_mmk_locks').findOne({ token: { $exists: true } })
  const { runId } = (await database.lock()) ?? {}
  assert.deepEqual(
    fence?.unsettled.map((/** @type {any} */ entry) => entry.runId),
    [runId],
  )
  await openGate(database)
  assert.equal((await run.ended).code, 0)
})
