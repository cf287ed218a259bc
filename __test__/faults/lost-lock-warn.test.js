/**
 * `onLockLost: 'warn'`: a live holder whose lock was taken away goes on, says so again and again, and
 * records what no other run has moved.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { lostWarning } from '../helpers/lost.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

/** Statement: the first run of the body stays in it until the test opens the door. */
const waitAtDoor = `
  const { ups } = await db.collection('runs').findOne({ _id: '1' })
  if (ups === 1) await globalThis.door`

/** @param {string} more statements after the writes */
const transactional = (more) => `
export const useTransaction = true
export async function up({ db, session }) {
  await db.collection('runs').updateOne({ _id: '1' }, { $inc: { ups: 1 } }, { upsert: true })
  ${more}
  await db.collection('seen').insertOne({ _id: 'committed' }, { session })
}`

/**
 * A run of the API that goes on after its lock was released by an operator.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} first the source of its first migration; `door` opens with `open`
 */
async function goingOn(t, first) {
  /** @type {() => void} */
  let open = () => {}
  const scope = /** @type {any} */ (globalThis)
  scope.door = new Promise((resolve) => {
    open = () => resolve(null)
  })
  t.after(() => {
    open()
    scope.door = undefined
  })
  const migrations = { '1-long.js': first, '2-next.js': counting('2') }
  const { database, config, onEvent, eventsOf } = await api(t, migrations)
  const kit = new MigratorKit(config)
  t.after(() => kit.disconnect())
  const outcome = runMigrations({ ...config, onLockLost: 'warn', onEvent }).then(
    (summary) => ({ summary, error: null }),
    (error) => ({ summary: null, error }),
  )
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  assert.ok(await kit.forceUnlock(), 'there was a lock to release')
  await poll(() => eventsOf('leaseLost').length === 1, { what: 'it noticed', deadlineMs: 60_000 })
  return { database, config, eventsOf, open, outcome }
}

test('a run that goes on without its lock warns at every renewal, records its migrations and exits 0', async (t) => {
  const database = await freshDatabase(t)
  const migrations = { '1-long.js': counting('1', waitAtGate), '2-next.js': counting('2') }
  const env = { ...database.env, MMK_ON_LOCK_LOST: 'warn' }
  const { mmk } = await project(t, migrations, { env })
  const run = mmk(['up', '--lock-ttl', '1'])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  await database.db.collection('_mmk_locks').deleteOne({ _id: /** @type {any} */ ('mmk_lock') })
  const said = () => run.stderr().match(new RegExp(lostWarning, 'gm'))?.length ?? 0
  await poll(() => said() >= 3, { what: 'it says so again', deadlineMs: 30_000 })
  await openGate(database)
  const { code, stdout, stderr } = await run.ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /Applied {2}1-long\.js/)
  assert.doesNotMatch(stderr, /LOCK_LOST|not ours any more/)
  const statuses = (await database.entries()).map(({ name, status }) => [name, status])
  assert.deepEqual(statuses, [
    ['1-long.js', 'applied'],
    ['2-next.js', 'applied'],
  ])
  assert.equal(await database.lock(), null)
})

test('a run that goes on leaves to another what that one has moved, fails, and touches no lock but its own', async (t) => {
  const { database, config, eventsOf, open, outcome } = await goingOn(t, counting('1', waitAtDoor))
  const { applied } = await runMigrations(config)
  assert.equal(applied.length, 2)
  const entries = await database.entries()
  const lock = await holdLock(database)
  open()
  const { error } = await outcome

  assert.equal(error?.code, 'LOCK_LOST')
  assert.equal(error.context.during, '1-long.js')
  assert.equal(eventsOf('claimConflict').length, 1)
  assert.deepEqual(await database.entries(), entries)
  assert.equal((await database.lock())?.owner, lock.owner)
  assert.equal((await runsOf(database, '2')).ups, 1)
})

test('a transaction of a run that goes on commits together with its entry while no other run has begun', async (t) => {
  const { database, open, outcome } = await goingOn(t, transactional(waitAtDoor))
  open()
  const { summary, error } = await outcome

  assert.equal(error, null)
  assert.equal(summary?.applied.length, 2)
  assert.equal(await database.db.collection('seen').countDocuments(), 1)
  assert.equal((await database.entry('1-long.js'))?.status, 'applied')
})

test('a transaction of a run that goes on is not committed once another run has taken over', async (t) => {
  const body = transactional(`${waitAtDoor}
    await db.collection('seen').insertOne({ _id: 'run ' + ups }, { session })`)
  const { database, config, open, outcome } = await goingOn(t, body)
  await runMigrations(config)
  const entries = await database.entries()
  open()
  const { error } = await outcome

  assert.equal(error?.code, 'LOCK_LOST')
  const seen = await database.db.collection('seen').find().sort({ _id: 1 }).toArray()
  assert.deepEqual(
    seen.map(({ _id }) => String(_id)),
    ['committed', 'run 2'],
  )
  assert.deepEqual(await database.entries(), entries)
})

test('a fence that another run has raised stops a run that goes on, and its transaction', async (t) => {
  const raise = `await db.collection('_mmk_locks').updateOne({ _id: 'mmk_fence' }, { $inc: { token: 1 } })`
  const { database, open, outcome } = await goingOn(t, transactional(`${waitAtDoor}\n${raise}`))
  open()
  const { error } = await outcome

  assert.equal(error?.code, 'LOCK_LOST')
  assert.equal(error.context.cause, 'fenced')
  assert.equal(await database.db.collection('seen').countDocuments(), 0)
  assert.equal((await database.entry('1-long.js'))?.status, 'running')
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
})

test('a body that fails after the lock was lost is recorded as failed, and the loss stands beside it', async (t) => {
  const body = counting('1', `${waitAtDoor}\nthrow new Error('no more')`)
  const { database, open, outcome } = await goingOn(t, body)
  open()
  const { error } = await outcome

  assert.equal(error?.code, 'MIGRATION_EXECUTION_FAILED')
  assert.deepEqual(
    error.suppressed.map((/** @type {any} */ later) => later.code),
    ['LOCK_LOST'],
  )
  assert.equal((await database.entry('1-long.js'))?.status, 'failed')
})
