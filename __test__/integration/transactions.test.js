/**
 * Migrations in transactions: what the server does not allow in one, what a body does behind its
 * back, and which of both modes ran.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { MongoClient } from 'mongodb'
import { api } from '../helpers/api.js'
import { attempting } from '../helpers/attempts.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'
import { standalone } from '../helpers/servers.js'

/** @param {string} statements */
const transactional = (statements) => `
export const useTransaction = true
export async function up({ db, client, session }) {
  await db.collection('seen').insertOne({ _id: 1 }, { session })
  ${statements}
}`

/** @param {import('../helpers/database.js').Database} database */
const seen = ({ db }) => db.collection('seen').countDocuments()

test('TXN-01: on a new database no transaction meets a collection of ours that is missing', async (t) => {
  const { database, config } = await api(t, {
    '1-existing.js': transactional(''),
    '2-missing.js': `export const up = ({ db, session }) =>
      db.collection('made inside').insertOne({ _id: 1 }, { session })`,
  })
  await database.db.createCollection('seen')

  const { applied } = await runMigrations({ ...config, useTransaction: true })

  assert.deepEqual(
    applied.map(({ file, transaction }) => [file, transaction]),
    [
      ['1-existing.js', true],
      ['2-missing.js', true],
    ],
  )
  assert.equal(await database.db.collection('made inside').countDocuments(), 1)
})

/** @type {Record<string, [string, RegExp]>} statement, and what the hint must name */
const refused = {
  'index.js': [
    `db.collection('full').createIndex({ a: 1 }, { session })`,
    /`createIndexes` on \S+full/,
  ],
  'drop.js': [`db.collection('full').drop({ session })`, /`drop`/],
  'rename.js': [`db.collection('full').rename('other', { session })`, /`renameCollection`/],
  'modify.js': [`db.command({ collMod: 'full', validator: {} }, { session })`, /`collMod`/],
  'list.js': [
    `db.listCollections({}, { session }).toArray()`,
    /`listCollections`.*leave \{ session \} out/,
  ],
  'count.js': [`db.collection('full').estimatedDocumentCount({ session })`, /countDocuments/],
  'out.js': [`db.collection('full').aggregate([{ $out: 'o' }], { session }).toArray()`, /`\$out`/],
  'view.js': [`db.createCollection('v', { viewOn: 'full', session })`, /Creating a view/],
  'wrapped.js': [
    `db.collection('full').drop({ session }).catch((cause) => { throw new Error('no', { cause }) })`,
    /`drop`/,
  ],
}

test('TXN-02: what a transaction does not allow is named, with the migration and the way out', async (t) => {
  const sources = Object.entries(refused).map(([name, [statement]]) => [
    name,
    transactional(`await ${statement}`),
  ])
  const { database, config } = await api(t, Object.fromEntries(sources))
  await database.db.collection('full').insertOne({ a: 1 })
  const kit = new MigratorKit(config)
  t.after(() => kit.disconnect())

  for (const [name, [, operation]] of Object.entries(refused)) {
    const error = await kit.up(name).catch((reason) => reason)
    assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED', name)
    assert.match(error.hint, operation)
    assert.ok(
      error.hint.includes(`\`export const useTransaction = false\` into ${name}`),
      error.hint,
    )
    assert.equal((await database.entry(name))?.status, 'failed')
  }
  assert.equal(await seen(database), 0)
})

test('TXN-02: one file opts out, in JavaScript or TypeScript, and the others stay in transactions', async (t) => {
  const index = (/** @type {string} */ field) =>
    `export const useTransaction = false
    export const up = ({ db, session }) =>
      db.collection('full').createIndex({ ${field}: 1 }, { session })`
  const { database, config } = await api(t, {
    '1-index.js': index('a'),
    '2-index.ts': `${index('b')} as unknown`,
    '3-data.js': transactional(''),
  })
  await database.db.collection('full').insertOne({ a: 1 })

  const { applied } = await runMigrations({ ...config, useTransaction: true })

  assert.deepEqual(
    applied.map(({ transaction }) => transaction),
    [false, false, true],
  )
  assert.equal((await database.db.collection('full').indexes()).length, 3)
})

test('TXN-03: on a standalone transactions are refused before anything ran, with the way out', async (t) => {
  const { database, config } = await api(
    t,
    {
      '1-plain.js': `export const useTransaction = false\n${counting('1')}`,
      '2.js': counting('2'),
    },
    standalone,
  )

  const error = await runMigrations({ ...config, useTransaction: true }).catch((e) => e)

  assert.equal(error.code, 'TRANSACTIONS_UNSUPPORTED')
  assert.match(error.message, /2\.js/)
  assert.match(error.hint, /replica set \(one member is enough\)/)
  assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })
  assert.deepEqual(await database.entries(), [])
})

test("a body's own transaction on a standalone is explained too", async (t) => {
  const source = `export const up = ({ db, client }) => client.withSession((session) =>
    session.withTransaction(() => db.collection('seen').insertOne({}, { session })))`
  const { config } = await api(t, { '1.js': source }, standalone)

  const error = await runMigrations(config).catch((reason) => reason)

  assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
  assert.match(error.hint, /need a replica set, and this server is a standalone/)
})

const forgetful = transactional(`
  await db.collection('read').findOne({})
  await db.collection('forgotten').insertOne({ _id: 1 })
  await db.collection('forgotten').insertOne({ _id: 2 })
  await db.collection('read').aggregate([{ $match: {} }, { $out: 'copied' }]).toArray()`)

/** @param {import('../helpers/api.js').Api} made */
const warnings = ({ eventsOf }) =>
  eventsOf('warning')
    .filter(({ code }) => ['WRITE_OUTSIDE_SESSION', 'OPERATIONS_IN_FLIGHT'].includes(code))
    .map(({ code, context }) => ({ code, ...context }))

const outside = { code: 'WRITE_OUTSIDE_SESSION', name: '1-forgets.js' }

test('TXN-04: each kind of write that forgets the session is warned about once, and no read', async (t) => {
  const made = await api(t, { '1-forgets.js': forgetful })
  const { database, config, onEvent } = made
  await database.db.collection('read').insertOne({ _id: /** @type {any} */ (1) })

  const { applied } = await runMigrations({ ...config, onEvent })

  assert.deepEqual(warnings(made), [
    { ...outside, command: 'insert', collection: 'forgotten' },
    { ...outside, command: 'aggregate', collection: 'copied' },
  ])
  assert.equal(applied[0]?.status, 'applied')
  assert.equal(await seen(database), 1)
})

test('TXN-04: a transaction that becomes pending while the run waits is watched as well', async (t) => {
  const made = await api(t, { '1-forgets.js': forgetful, '2-plain.js': counting('2') })
  const { database, config, onEvent } = made
  const kit = new MigratorKit(config)
  t.after(() => kit.disconnect())
  await kit.mark('1-forgets.js', 'applied')
  await holdLock(database)
  const meanwhile = async () => {
    const reverted = { $set: { status: 'reverted' } }
    await database.db.collection('_mmk_migrations').updateOne({ name: '1-forgets.js' }, reverted)
    await database.db.collection('_mmk_locks').deleteOne({ _id: /** @type {any} */ ('mmk_lock') })
  }
  let told = false

  await runMigrations({
    ...config,
    onLockHeld: 'wait',
    onEvent: (event) => {
      onEvent(event)
      if (event.type !== 'lockWaiting' || told) return
      told = true
      void meanwhile()
    },
  })

  assert.deepEqual(
    warnings(made).map(({ code }) => code),
    [outside.code, outside.code],
  )
})

for (const driver of /** @type {const} */ (['mongodb-6', 'mongodb'])) {
  test(`TXN-04: under strict a migration that forgets the session is not committed (${driver})`, async (t) => {
    const database = await freshDatabase(t)
    const { mmk } = await project(t, { '1-forgets.js': forgetful }, { env: database.env, driver })

    const { code, stdout, stderr } = await mmk(['up', '--strict']).ended

    assert.equal(code, 1, stdout + stderr)
    assert.match(
      stderr,
      /⚠ Warning {2}1-forgets\.js runs in a transaction, and its insert on "forgotten"/,
    )
    assert.match(stderr, /MIGRATION_EXECUTION_FAILED: 1-forgets\.js/)
    assert.match(stderr, /outside its transaction, which strict forbids: insert on "forgotten"/)
    assert.equal(await seen(database), 0)
    assert.equal(await database.db.collection('forgotten').countDocuments(), 2)
    assert.equal((await database.entry('1-forgets.js'))?.status, 'failed')
  })
}

const conflictsOnce = transactional(`
  const { ups } = await db.collection('runs').findOneAndUpdate(
    { _id: '1' }, { $inc: { ups: 1 } }, { upsert: true, returnDocument: 'after' })
  await db.collection('stock').findOne({ _id: 1 }, { session })
  if (ups === 1) await db.collection('stock').updateOne({ _id: 1 }, { $inc: { sold: 1 } })
  await db.collection('stock').updateOne({ _id: 1 }, { $inc: { checked: 1 } }, { session })`)

test('the lines of a run say what ran in a transaction, what was tried again, and why (mongodb-6)', async (t) => {
  const database = await freshDatabase(t)
  const migrations = { '1-plain.js': counting('plain'), '2-conflicts.js': conflictsOnce }
  const { mmk } = await project(t, migrations, { env: database.env, driver: 'mongodb-6' })
  await database.db.collection('stock').insertOne({ _id: /** @type {any} */ (1) })

  const { code, stdout, stderr } = await mmk(['up']).ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /Applied {2}1-plain\.js {3}\[\d+ms\]/)
  assert.match(stdout, /Applied {2}2-conflicts\.js {3}\[\d+ms, transaction, attempt 2\]/)
  assert.match(stderr, /Retrying {2}2-conflicts\.js .*WriteConflict.*; attempt 2 begins/)
  const stock = await database.db.collection('stock').findOne()
  assert.deepEqual(stock, { _id: 1, sold: 1, checked: 1 })
})

test('MMK_TRANSACTION_RETRY_TIMEOUT_MS=0 tries nothing again', async (t) => {
  const database = await freshDatabase(t)
  const env = { ...database.env, MMK_TRANSACTION_RETRY_TIMEOUT_MS: '0' }
  const { mmk } = await project(t, { '2-conflicts.js': conflictsOnce }, { env })
  await database.db.collection('stock').insertOne({ _id: /** @type {any} */ (1) })

  const { code, stdout, stderr } = await mmk(['up']).ended

  assert.equal(code, 1, stdout + stderr)
  assert.match(stderr, /Hint: Other writers kept changing the same documents.*2-conflicts\.js/)
  assert.deepEqual(await runsOf(database, '1'), { ups: 1, downs: 0 })
  assert.equal(await seen(database), 0)
})

const duplicate = `await db.collection('seen').insertOne({ _id: 1 }, { session }).catch(() => {})`

for (const [kind, more] of /** @type {const} */ ([
  ['and goes on', `await db.collection('more').insertOne({}, { session })`],
  ['and returns', ''],
])) {
  test(`a body that catches an error of its transaction ${kind} has failed, and is told which it was`, async (t) => {
    const { database, config, onEvent, eventsOf } = await api(t, {
      '1-catches.js': transactional(`${duplicate}\n${more}`),
    })

    const error = await runMigrations({ ...config, onEvent }).catch((reason) => reason)

    assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
    assert.match(error.hint, /insert had failed with "E11000 duplicate key/)
    assert.deepEqual(eventsOf('transactionRetried'), [])
    assert.equal(await seen(database), 0)
    assert.equal((await database.entry('1-catches.js'))?.status, 'failed')
  })
}

test('on a client of the user, which tells us nothing, a caught error ends after three attempts', async (t) => {
  const {
    database,
    attempts,
    config,
    seen: kept,
  } = await attempting(t, {
    after: `await db.collection('seen').insertOne({ _id: 'twice' }, { session })
      await db.collection('seen').insertOne({ _id: 'twice' }, { session }).catch(() => {})`,
  })
  const client = await new MongoClient(database.uri, { appName: 'theirs' }).connect()
  t.after(() => client.close())

  const error = await runMigrations({ ...config, client }).catch((reason) => reason)

  assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
  assert.equal(attempts.count, 3)
  assert.match(error.hint, /in all 3 attempts.*60 seconds.*catches/)
  assert.deepEqual(await kept(), [])
})

for (const useTransaction of [false, true]) {
  const mode = useTransaction ? 'in a transaction' : 'without a transaction'
  test(`a body ${mode} that does not await its operations is warned about`, async (t) => {
    const slow = `db.collection('seen').findOne({ $where: 'sleep(300) || true' })`
    const made = await api(t, {
      '1-awaits.js': `export const up = async ({ db }) => { await ${slow} }`,
      '2-forgets.js': `export const up = ({ db }) => { void ${slow}.catch(() => {}) }`,
    })
    const { database, config, onEvent, eventsOf } = made
    await database.db.collection('seen').insertOne({ _id: /** @type {any} */ (1) })

    await runMigrations({ ...config, onEvent, useTransaction })

    const expected = { code: 'OPERATIONS_IN_FLIGHT', name: '2-forgets.js', operations: 1 }
    assert.deepEqual(warnings(made), [expected])
    assert.deepEqual(
      eventsOf('migrationFinished').map(({ transaction }) => transaction),
      [useTransaction, useTransaction],
    )
  })
}
