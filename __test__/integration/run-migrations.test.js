/**
 * `runMigrations` and `pendingMigrations` as an app uses them, on a replica set and on a standalone.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MigratorKit, pendingMigrations, runMigrations } from 'mongo-migrate-kit'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'
import { replicaSet, standalone } from '../helpers/servers.js'

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 * @param {string} [uri]
 */
async function app(t, migrations, uri = replicaSet) {
  const database = await freshDatabase(t, uri)
  const { migrationsDir } = await project(t, migrations)
  return { database, config: { ...database.config, migrationsDir, logger: null } }
}

const two = { '1-one.js': counting('one'), '2-two.js': counting('two') }

for (const [kind, uri] of Object.entries({
  'a replica set': replicaSet,
  'a standalone': standalone,
})) {
  describe(`on ${kind}`, () => {
    test('pending migrations are applied in the order of their names, in one batch', async (t) => {
      const { database, config } = await app(t, two, uri)

      const summary = await runMigrations(config)

      const { applied, upToDate, waited } = summary
      assert.deepEqual(
        applied.map(({ file, status, batch }) => ({ file, status, batch })),
        [
          { file: '1-one.js', status: 'applied', batch: 1 },
          { file: '2-two.js', status: 'applied', batch: 1 },
        ],
      )
      assert.deepEqual({ upToDate, waited }, { upToDate: false, waited: false })
      const [one] = await database.entries()
      assert.equal(one?.status, 'applied')
      assert.match(one?.checksum, /^[0-9a-f]{64}$/)
      assert.ok(one?.appliedAt instanceof Date)
      assert.equal(await database.lock(), null)
    })

    test('a second boot finds nothing to do, takes no lock and does not wait for a holder', async (t) => {
      const { database, config } = await app(t, two, uri)
      await runMigrations(config)
      const held = await holdLock(database)

      const summary = await runMigrations(config)

      assert.deepEqual(summary.applied, [])
      assert.equal(summary.upToDate, true)
      assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
      assert.equal((await database.lock())?.owner, held.owner)
    })
  })
}

test('configuration and options may come as two arguments, as in 1.x', async (t) => {
  const { config } = await app(t, two)

  const { applied } = await runMigrations(config, { onLockHeld: 'wait' })

  assert.equal(applied.length, 2)
})

test('options of a wrong type are refused by name before anything is connected to', async () => {
  const uri = 'mongodb://127.0.0.1:1'
  const config = { uri, dbName: 'app', migrationsDir: '.', logger: null }
  /** @type {[RegExp, any][]} */
  const wrong = [
    [/^Options are an object, not 5/, 5],
    [/^Options are an object, not /, []],
    [/^Options are an object, not /, () => {}],
    [/^`signal` must be an AbortSignal, not 5/, { ...config, signal: 5 }],
    [/^`signal` must be an AbortSignal, not /, { ...config, signal: { aborted: false } }],
  ]
  for (const [message, input] of wrong) {
    await assert.rejects(runMigrations(input), { code: 'INVALID_ARGUMENT', message })
  }
  const kit = new MigratorKit(config)
  await assert.rejects(kit.forceUnlock({ owner: /** @type {any} */ (5) }), {
    code: 'INVALID_ARGUMENT',
    message: /^`owner` must be a text, not 5/,
  })
})

test('a held lock rejects with its holder and leaves the database as it was', async (t) => {
  const { database, config } = await app(t, two)
  const held = await holdLock(database)

  await assert.rejects(runMigrations(config), (error) => {
    assert.ok(error instanceof Error && 'code' in error && 'context' in error)
    assert.equal(error.code, 'LOCK_ALREADY_HELD')
    const { holder } = /** @type {any} */ (error.context)
    assert.deepEqual([holder.host, holder.pid, holder.executedBy], ['deploy-a', 16152, 'asha'])
    assert.deepEqual(holder.lockedAt, held.lockedAt)
    return true
  })
  assert.deepEqual(await database.entries(), [])
  assert.equal((await database.lock())?.owner, held.owner)
})

test("onLockHeld: 'wait' waits for a holder that has crashed until its lease is over", async (t) => {
  const { database, config } = await app(t, two)
  const now = await database.now()
  await holdLock(database, { expiresAt: new Date(now.getTime() + 1500) })

  const summary = await runMigrations({ ...config, onLockHeld: 'wait' })

  assert.equal(summary.applied.length, 2)
  assert.equal(summary.waited, true)
  assert.ok(summary.waitedMs >= 500, `it waited ${summary.waitedMs} ms`)
})

test('pendingMigrations lists what would run and creates nothing', async (t) => {
  const { database, config } = await app(t, two)

  const rows = await pendingMigrations(config)

  assert.deepEqual(
    rows.map(({ file, status, state }) => [file, status, state]),
    [
      ['1-one.js', 'pending', 'pending'],
      ['2-two.js', 'pending', 'pending'],
    ],
  )
  assert.deepEqual(await database.db.listCollections().toArray(), [])
})

test('files written for migrate-mongo, CommonJS and TypeScript run side by side', async (t) => {
  const { database, config } = await app(t, {
    '1-migrate-mongo.cjs': `
      module.exports = {
        async up(db, client) {
          await db.collection('seen').insertOne({ _id: 1, sameName: client.db(db.databaseName).databaseName })
        },
        async down(db) { await db.collection('seen').deleteOne({ _id: 1 }) },
      }`,
    '2-object.mjs': `
      export default { up: ({ db }) => db.collection('seen').insertOne({ _id: 2 }) }`,
    '3-typed.ts': `
      import type { MigrationContext } from 'mongo-migrate-kit'
      enum Id { Third = 3 }
      export async function up({ db }: MigrationContext): Promise<void> {
        await db.collection<{ _id: number }>('seen').insertOne({ _id: Id.Third })
      }`,
  })

  await runMigrations(config)

  const seen = await database.db.collection('seen').find().sort({ _id: 1 }).toArray()
  assert.deepEqual(seen, [
    { _id: /** @type {any} */ (1), sameName: database.name },
    { _id: /** @type {any} */ (2) },
    { _id: /** @type {any} */ (3) },
  ])
})

test('a transactional migration that throws leaves neither its writes nor an applied entry', async (t) => {
  const { database, config } = await app(t, {
    '1-transaction.js': `
      export const useTransaction = true
      export async function up({ db, session }) {
        await db.collection('seen').insertOne({ _id: 1 }, { session })
        throw new Error('changed my mind')
      }`,
  })

  await assert.rejects(runMigrations(config), { code: 'MIGRATION_EXECUTION_FAILED' })

  assert.equal(await database.db.collection('seen').countDocuments(), 0)
  assert.equal((await database.entry('1-transaction.js'))?.status, 'failed')
})

test('a transactional migration and its entry are committed together', async (t) => {
  const { database, config } = await app(t, {
    '1-transaction.js': `
      export const useTransaction = true
      export async function up({ db, session }) {
        await db.collection('seen').insertOne({ _id: 1 }, { session })
      }`,
  })

  const { applied } = await runMigrations(config)

  assert.equal(applied[0]?.transaction, true)
  assert.equal(await database.db.collection('seen').countDocuments(), 1)
  assert.equal((await database.entry('1-transaction.js'))?.status, 'applied')
})

test('transactions on a standalone are refused before anything ran', async (t) => {
  const migrations = {
    '1-plain.js': counting('plain'),
    '2-transaction.js': `export const useTransaction = true\n${counting('transaction')}`,
  }
  const { database, config } = await app(t, migrations, standalone)

  await assert.rejects(runMigrations(config), { code: 'TRANSACTIONS_UNSUPPORTED' })

  assert.deepEqual(await runsOf(database, 'plain'), { ups: 0, downs: 0 })
  assert.deepEqual(await database.entries(), [])
})
