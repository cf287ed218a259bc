/**
 * Scenarios DRV of docs/scenarios.md: the app's own driver, client and types.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { MongoClient } from 'mongodb'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const types = `
  import { Binary, Decimal128, Long, ObjectId } from 'mongodb'
  const made = () => ({
    _id: new ObjectId('0123456789abcdef01234567'),
    long: Long.fromString('9007199254740993'),
    decimal: Decimal128.fromString('0.1'),
    binary: new Binary(Buffer.from('bytes')),
  })
  export const useTransaction = true
  export async function up({ db, session }) {
    await db.collection('typed').insertOne(made(), { session })
    const filter = { long: made().long, decimal: made().decimal }
    const found = await db.collection('typed').findOne(filter, { session })
    if (!(found._id instanceof ObjectId)) throw new Error('another ObjectId')
  }`

for (const driver of /** @type {const} */ (['mongodb', 'mongodb-6'])) {
  test(`DRV-01: types that an app imports from its ${driver} are those of the db it is given`, async (t) => {
    const database = await freshDatabase(t)
    const { mmk } = await project(t, { '1-types.mjs': types }, { env: database.env, driver })

    const { code, stdout, stderr } = await mmk(['up']).ended

    assert.equal(code, 0, stdout + stderr)
    const typed = database.db.collection('typed')
    const kinds = ['objectId', 'long', 'decimal', 'binData']
    const fields = ['_id', 'long', 'decimal', 'binary']
    const stored = Object.fromEntries(fields.map((name, at) => [name, { $type: kinds[at] ?? '' }]))
    assert.equal(await typed.countDocuments(stored), 1)
  })
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} uri
 */
function clientOf(t, uri) {
  const client = new MongoClient(uri)
  t.after(() => client.close())
  return client
}

for (const state of ['connected', 'not connected yet']) {
  test(`DRV-02: an app's own client, ${state}, serves the bodies with the configured database, and stays open`, async (t) => {
    const { database, config } = await api(t, { '1-own.js': counting('own') })
    const client = clientOf(t, `${database.uri.replace(/\/(\?|$)/, '/another$1')}`)
    if (state === 'connected') await client.connect()
    const kit = new MigratorKit({ ...config, client })
    let closed = 0
    client.on('topologyClosed', () => {
      closed += 1
    })

    await kit.up()
    await kit.down()
    await kit.disconnect()

    assert.deepEqual(await runsOf(database, 'own'), { ups: 1, downs: 1 })
    assert.equal(closed, 0)
    assert.equal((await client.db(database.name).command({ ping: 1 })).ok, 1)
  })
}

/**
 * Mongoose as far as we use it.
 * @param {MongoClient} client
 * @param {number} readyState
 */
const mongooseWith = (client, readyState) => {
  const connection = {
    readyState,
    asPromise: async () => {
      await client.connect()
      connection.readyState = 1
    },
    getClient: () => client,
  }
  return { connection }
}

for (const [state, readyState] of /** @type {const} */ ([
  ['connected', 1],
  ['connecting', 2],
])) {
  test(`DRV-02: bodies run on the client of a Mongoose connection that is ${state}`, async (t) => {
    const { database, config } = await api(t, {
      '1-own.js': `export async function up({ client, mongoose, db }) {
        await db.collection('seen').insertOne({ same: client === mongoose.connection.getClient() })
      }`,
    })
    const client = clientOf(t, database.uri)
    if (state === 'connected') await client.connect()

    await runMigrations({ ...config, mongoose: mongooseWith(client, readyState) })

    assert.equal((await database.db.collection('seen').findOne({}))?.same, true)
    assert.equal((await client.db(database.name).command({ ping: 1 })).ok, 1)
  })
}

test("DRV-02: with an app's own client the lock is the same as without", async (t) => {
  const { database, config } = await api(t, { '1-own.js': counting('own') })
  await holdLock(database)

  const run = runMigrations({ ...config, client: clientOf(t, database.uri) })

  await assert.rejects(run, { code: 'LOCK_ALREADY_HELD' })
  assert.deepEqual(await runsOf(database, 'own'), { ups: 0, downs: 0 })
})

test('DRV-03: a body whose model never answers is recorded as failed, with what it said', async (t) => {
  const { database, config } = await api(t, {
    '1-model.js': `
      const User = { updateMany: () => new Promise((_, reject) => setTimeout(
        () => reject(new Error('Operation users.updateMany() buffering timed out')), 100)) }
      export const up = async () => { await User.updateMany() }`,
    '2-next.js': counting('next'),
  })

  await assert.rejects(runMigrations(config), {
    code: 'MIGRATION_EXECUTION_FAILED',
    message: /buffering timed out/,
  })

  assert.equal((await database.entry('1-model.js'))?.status, 'failed')
  assert.deepEqual(await runsOf(database, 'next'), { ups: 0, downs: 0 })
})
