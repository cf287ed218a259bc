/**
 * Users that may do little: an import needs no more than to read the source, and a look around shows
 * what its user may see.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { startAuthServer } from '../helpers/auth-server.js'
import { counting, runsOf } from '../helpers/bodies.js'

const two = { '1.js': counting('1'), '2.js': counting('2') }
const writing = ['find', 'insert', 'update', 'remove']

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string[]>} more actions by collection, beside those that every run needs
 */
async function app(t, more) {
  const server = await startAuthServer(t)
  const { database, config } = await api(t, two, server.uri)
  await database.db.collection('changelog').insertOne({ fileName: '1.js', appliedAt: new Date() })
  const actions = { _mmk_locks: writing, _mmk_migrations: writing, runs: writing, ...more }
  const privileges = Object.entries(actions).map(([collection, granted]) => ({
    resource: { db: database.name, collection },
    actions: granted,
  }))
  const uri = await server.userWith(database.name, privileges)
  return { database, config: { ...config, uri } }
}

test('who may only read the source is warned of it, and can import it', async (t) => {
  const { database, config } = await app(t, { changelog: ['find'] })
  const kit = new MigratorKit(config)
  t.after(() => kit.disconnect())

  await assert.rejects(kit.up(), { code: 'FOREIGN_CHANGELOG' })
  const { imported } = await kit.import()
  const applied = await kit.up()

  assert.equal(imported, 1)
  assert.deepEqual(
    applied.map(({ file }) => file),
    ['2.js'],
  )
  assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })
})

test('who may not see the other changelog runs as if there were none', async (t) => {
  const { database, config } = await app(t, {})

  const { applied } = await runMigrations(config)

  assert.equal(applied.length, 2)
  assert.deepEqual(await runsOf(database, '1'), { ups: 1, downs: 0 })
})
