/**
 * The `signal` option: what Ctrl-C is to the command line, an AbortSignal is to an app.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'

/** What comes before it has been answered, so that the signal finds the body where it waits. */
const arrived = 'globalThis.arrived = true'
const untilTold = `await new Promise((resolve) => signal.addEventListener('abort', resolve))`

/** Returns when a body has come to where it waits, and forgets it again. */
async function bodyArrived() {
  const here = /** @type {{ arrived?: boolean }} */ (globalThis)
  await poll(() => here.arrived, { what: 'the body began' })
  delete here.arrived
}

/**
 * @param {Promise<unknown>} run
 * @returns {Promise<any>} what it rejected with
 */
const failureOf = (run) =>
  run.then(
    () => assert.fail('it resolved'),
    (error) => error,
  )

test('an aborted signal ends a wait for the lock at once, and its reason is the cause', async (t) => {
  const { database, config, onEvent, eventsOf } = await api(t, { '1-one.js': counting('1') })
  await holdLock(database)
  const controller = new AbortController()
  const { signal } = controller
  const failure = failureOf(runMigrations({ ...config, onEvent, onLockHeld: 'wait', signal }))
  await poll(() => eventsOf('lockWaiting').length > 0, { what: 'it waits' })

  const reason = new Error('the pod is going away')
  const aborted = performance.now()
  controller.abort(reason)
  const error = await failure
  assert.ok(error.context.metrics.lockWaitMs > 0, 'how long it has waited is told')

  assert.equal(error.code, 'RUN_CANCELLED')
  assert.equal(error.cause, reason)
  assert.ok(performance.now() - aborted <= 2000)
  assert.deepEqual(await database.entries(), [])
})

for (const transaction of [true, false]) {
  const kind = transaction ? 'transactional' : 'plain'
  test(`a ${kind} body that is told to end may finish what it is about, and is applied then`, async (t) => {
    const body = `
      export const useTransaction = ${transaction}
      export async function up({ db, session, signal }) {
        await db.collection('steps').insertOne({ _id: 1 }, { session })
        ${arrived}
        ${untilTold}
        await db.collection('steps').insertOne({ _id: 2 }, { session })
      }`
    const { database, config } = await api(t, { '1-long.js': body, '2-next.js': counting('2') })
    const controller = new AbortController()
    const failure = failureOf(runMigrations({ ...config, signal: controller.signal }))
    await bodyArrived()
    controller.abort()

    assert.equal((await failure).code, 'RUN_CANCELLED')
    assert.equal(await database.db.collection('steps').countDocuments(), 2)
    assert.equal((await database.entry('1-long.js'))?.status, 'applied')
    assert.equal(await database.entry('2-next.js'), null)
    assert.equal(await database.lock(), null)
  })
}

test('an aborted signal tells the body, which fails, and no other begins', async (t) => {
  const migrations = {
    '1-long.js': counting('1', `${arrived}; ${untilTold}; throw new Error('stopping')`),
    '2-next.js': counting('2'),
  }
  const { database, config } = await api(t, migrations)
  const controller = new AbortController()
  const failure = failureOf(runMigrations({ ...config, signal: controller.signal }))
  await bodyArrived()

  controller.abort()
  const error = await failure

  assert.equal(error.code, 'RUN_CANCELLED')
  assert.equal((await database.entry('1-long.js'))?.status, 'failed')
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
  assert.equal(await database.lock(), null)
})

test('an aborted signal keeps what a body did that returns when it is told', async (t) => {
  const migrations = {
    '1-long.js': counting('1', `${arrived}; ${untilTold}`),
    '2-next.js': counting('2'),
  }
  const { database, config } = await api(t, migrations)
  const controller = new AbortController()
  const failure = failureOf(runMigrations({ ...config, signal: controller.signal }))
  await bodyArrived()

  controller.abort()

  assert.equal((await failure).code, 'RUN_CANCELLED')
  assert.equal((await database.entry('1-long.js'))?.status, 'applied')
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
})

test('a body that never settles is left after five seconds, interrupted, with the lock free', async (t) => {
  const migrations = { '1-stuck.js': counting('1', `${arrived}; await new Promise(() => {})`) }
  const { database, config } = await api(t, migrations)
  const controller = new AbortController()
  const failure = failureOf(runMigrations({ ...config, signal: controller.signal }))
  await bodyArrived()

  controller.abort()
  const error = await failure

  assert.equal(error.code, 'RUN_CANCELLED')
  assert.equal(error.context.settled, false)
  assert.equal((await database.entry('1-stuck.js'))?.status, 'running')
  assert.equal(await database.lock(), null)
})

test('a signal that was aborted before keeps a run from beginning', async (t) => {
  const { database, config } = await api(t, { '1-one.js': counting('1') })

  const error = await failureOf(runMigrations({ ...config, signal: AbortSignal.abort('no') }))

  assert.equal(error.code, 'RUN_CANCELLED')
  assert.equal(error.cause, 'no')
  assert.deepEqual(await database.db.listCollections().toArray(), [])
})

test('a signal that is aborted after the run has ended changes nothing', async (t) => {
  const { config } = await api(t, { '1-one.js': counting('1') })
  const controller = new AbortController()

  const { applied } = await runMigrations({ ...config, signal: controller.signal })
  controller.abort()

  assert.equal(applied.length, 1)
  assert.equal((await runMigrations(config)).upToDate, true)
})
