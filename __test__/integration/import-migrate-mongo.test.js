/**
 * Files written for migrate-mongo run as they are: `up(db, client)` and `down(db, client)`, in either
 * module system, started here or imported. What they do is what that tool's own samples and readme
 * show: updates through `db`, transactions through `client`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../helpers/database.js'
import { oneX } from '../helpers/one-x.js'
import { project } from '../helpers/project.js'

const blacklist = `await db.collection('albums').updateOne({ artist: 'The Beatles' }, { $set: { blacklisted: true } })`
const allow = `await db.collection('albums').updateOne({ artist: 'The Beatles' }, { $set: { blacklisted: false } })`

/** @param {string} statement @param {string} options */
const inTransaction = (statement, options) => `
    const session = client.startSession()
    try {
      await session.withTransaction(async () => {
        await db.collection('albums').updateMany({}, ${statement}, { session })
      }${options})
    } finally {
      await session.endSession()
    }`

const commonjs = `module.exports = {
  /**
   * @param db {import('mongodb').Db}
   * @param client {import('mongodb').MongoClient}
   * @returns {Promise<void>}
   */
  async up(db, client) {
    ${blacklist}
  },

  async down(db, client) {
    ${allow}
  }
};
`

const commonjsWithTransaction = `module.exports = {
  async up(db, client) {${inTransaction('{ $set: { stars: 5 } }', '')}
  },
  async down(db, client) {${inTransaction("{ $unset: { stars: '' } }", '')}
  },
};
`

const esm = `/**
 * @param db {import('mongodb').Db}
 * @param client {import('mongodb').MongoClient}
 */
export const up = async (db, client) => {
  await client.db(db.databaseName).collection('albums').createIndex({ artist: 1 }, { name: 'by_artist' })
  await db.createCollection('labels')
};

export const down = async (db, client) => {
  await db.dropCollection('labels')
  await db.collection('albums').dropIndex('by_artist')
};
`

const files = {
  '20240101000000-blacklist_the_beatles.js': commonjs,
  '20240102000000-rate_all.cjs': commonjsWithTransaction,
  '20240103000000-index_artists.mjs': esm,
}

/** @param {import('node:test').TestContext} t */
async function app(t) {
  const database = await freshDatabase(t)
  await database.db.collection('albums').insertOne({ artist: 'The Beatles' })
  const created = await project(t, files, { ...database, type: 'commonjs' })
  /** @param {string[]} args one command that must succeed */
  const ok = async (...args) => {
    const end = await created.mmk(args).ended
    assert.equal(end.code, 0, end.stdout + end.stderr)
    return end
  }
  const album = async () => {
    const found = await database.db.collection('albums').findOne()
    const indexes = await database.db.collection('albums').indexes()
    const labels = await database.db.listCollections({ name: 'labels' }).toArray()
    return {
      blacklisted: found?.blacklisted,
      stars: found?.stars,
      indexes: indexes.length,
      labels: labels.length,
    }
  }
  return { ...created, database, ok, album }
}

const after = { blacklisted: true, stars: 5, indexes: 2, labels: 1 }
const reverted = { blacklisted: false, stars: undefined, indexes: 1, labels: 0 }

test('files of migrate-mongo run up and down as they are', async (t) => {
  const { ok, album } = await app(t)

  await ok('up')
  assert.deepEqual(await album(), after)

  await ok('down')
  assert.deepEqual(await album(), reverted)
})

test('what migrate-mongo applied is imported, one by one reverted, and applied again', async (t) => {
  const { ok, album, database } = await app(t)
  // As that tool leaves them: one run, so one block.
  const documents = Object.keys(files).map((fileName, index) => ({
    fileName,
    appliedAt: new Date(Date.UTC(2024, 1, 1, 12, 0, index)),
    migrationBlock: Date.UTC(2024, 1, 1, 12),
  }))
  await ok('up', '--force-fresh')
  await database.db.collection('_mmk_migrations').drop()
  await database.db.collection('changelog').insertMany(documents)

  await ok('import')
  const untouched = await ok('up')
  assert.match(untouched.stdout, /Nothing to migrate/)
  assert.deepEqual(await album(), after)

  const down = await ok('down', '--steps', '3', '--json')
  assert.deepEqual(
    JSON.parse(down.stdout).map((/** @type {{ file: string }} */ { file }) => file),
    Object.keys(files).toReversed(),
  )
  assert.deepEqual(await album(), reverted)

  await ok('up')
  assert.deepEqual(await album(), after)
  const entries = await database.entries()
  assert.ok(entries.every(({ origin, status }) => origin === undefined && status === 'applied'))
})

test('mongo-migrate-kit 1.3.0 reads what was imported, times that nobody knew included', async (t) => {
  const { ok, database, ...app_ } = await app(t)
  await database.db
    .collection('_migrations')
    .insertMany(Object.keys(files).map((file) => ({ _id: /** @type {any} */ (file.slice(0, -3)) })))
  await ok('import', '--from', '_migrations', '--tool', 'east')

  const end = await oneX(app_, ['status', '--json']).ended
  const preview = await oneX(app_, ['dry-run', 'down', '--steps', '1', '--json']).ended

  assert.equal(end.code, 0, end.stdout + end.stderr)
  const rows = JSON.parse(end.stdout)
  assert.deepEqual(
    rows.map((/** @type {{ status: string }} */ { status }) => status),
    rows.map(() => 'applied'),
  )
  assert.equal(preview.code, 0, preview.stdout + preview.stderr)
})
