/**
 * docs/upgrading.md on one database with the published 1.3.0: what each reads of the other's history.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { oneX } from '../helpers/one-x.js'
import { project } from '../helpers/project.js'

/** @import { MmkConfig } from 'mongo-migrate-kit' */

const three = {
  '1-one.js': counting('one'),
  '2-two.js': counting('two'),
  '3-three.js': counting('three'),
}

/**
 * @param {import('node:test').TestContext} t
 * @param {{ migrations?: Record<string, string> } & Partial<MmkConfig>} [options]
 */
async function both(t, { migrations = three, ...more } = {}) {
  const database = await freshDatabase(t)
  const app = await project(t, migrations, database)
  const { migrationsDir } = app
  const two = new MigratorKit({ ...database.config, migrationsDir, logger: null, ...more })
  t.after(() => two.disconnect())
  /** @param {string[]} args a command of 1.3.0 that must succeed, and its document */
  const one = async (...args) => {
    const end = await oneX(app, [...args, '--json']).ended
    assert.equal(end.code, 0, end.stdout + end.stderr)
    return JSON.parse(end.stdout)
  }
  return { ...app, database, changelog: database.db.collection('_mmk_migrations'), one, two }
}

/** @param {{ file: string, status: string }[]} rows */
const outline = (rows) => rows.map(({ file, status }) => `${file} ${status}`)

/** @param {string} name @param {object} [more] an entry as 1.x writes it */
const entryOf1x = (name, more = {}) => ({
  ...{ name, batch: 9, status: 'applied', appliedAt: new Date(), duration: 1, checksum: 'x' },
  ...more,
})

test('a history of 1.3.0 is taken as it is, without a step', async (t) => {
  const { database, changelog, one, two } = await both(t)
  await one('up')
  await one('down', '3-three.js')
  const before = await database.entries()

  const rows = await two.status()
  assert.deepEqual(outline(rows), ['1-one.js applied', '2-two.js applied', '3-three.js pending'])
  assert.deepEqual(
    rows.map(({ checksumOk }) => checksumOk),
    [true, true, null],
  )
  assert.deepEqual(await database.entries(), before)

  assert.deepEqual(outline(await two.up()), ['3-three.js applied'])
  assert.deepEqual(outline(await two.down('1-one.js')), ['1-one.js reverted'])
  const after = await database.entries()
  assert.deepEqual(
    after.map(({ _id }) => _id),
    before.map(({ _id }) => _id),
  )
  assert.ok((await changelog.indexes()).some(({ name }) => name === 'name_1'))
})

test('what 2.x has applied, reverted, redone and marked is that to 1.3.0', async (t) => {
  const { database, one, two } = await both(t)
  await two.up()
  await two.redo('1-one.js')
  await two.down('2-two.js')
  await two.mark('3-three.js', 'pending')
  await two.mark('3-three.js', 'applied')

  const rows = await one('status')

  assert.deepEqual(outline(rows), ['1-one.js applied', '2-two.js pending', '3-three.js applied'])
  assert.deepEqual(
    rows.map((/** @type {any} */ { checksumOk }) => checksumOk),
    [true, null, true],
  )
  assert.deepEqual(outline(await one('up')), ['2-two.js applied'])
  assert.deepEqual(outline(await one('down', '1-one.js')), ['1-one.js reverted'])
  assert.deepEqual(await runsOf(database, 'one'), { ups: 2, downs: 2 })
  assert.deepEqual(outline(await one('down', '3-three.js')), ['3-three.js reverted'])
})

test('an entry that 1.3.0 has written anew has lost what only 2.x knows, and is read all the same', async (t) => {
  const { database, one, two } = await both(t)
  await two.up('1-one.js')
  await two.down('1-one.js')
  await one('up', '1-one.js')

  const entry = await database.entry('1-one.js')
  assert.deepEqual(
    [entry?.version, entry?.runId, entry?.history],
    [undefined, undefined, undefined],
  )
  assert.deepEqual(outline(await two.down('1-one.js')), ['1-one.js reverted'])
  assert.equal((await database.entry('1-one.js'))?.version, 2)
})

test('each takes back the last batch of the other, and counts on from it', async (t) => {
  const { database, one, two, write } = await both(t, {
    migrations: { '1-one.js': counting('one'), '2-two.js': counting('two') },
  })
  const both12 = ['2-two.js reverted', '1-one.js reverted']
  const batches = async () => (await database.entries()).map(({ batch }) => batch)
  await one('up')
  assert.deepEqual(outline(await two.down()), both12)
  await two.up()
  assert.deepEqual(await batches(), [2, 2])
  assert.deepEqual(outline(await one('down')), both12)
  assert.deepEqual(outline(await two.status()), ['1-one.js pending', '2-two.js pending'])

  await one('up')
  await write('migrations/3-three.js', counting('three'))
  await two.up()
  assert.deepEqual(await batches(), [3, 3, 4])
  assert.deepEqual(outline(await one('down', '--steps', '2')), [
    '3-three.js reverted',
    '2-two.js reverted',
  ])
  assert.deepEqual(outline(await two.down(undefined, { batch: 3 })), ['1-one.js reverted'])
  assert.deepEqual(await runsOf(database, 'one'), { ups: 3, downs: 3 })
})

test('a transaction, a step and a failure leave entries that 1.3.0 shows as they are', async (t) => {
  const inTransaction = `export const useTransaction = true\n${counting('one')}`
  const { one, two, write } = await both(t, { migrations: { ...three, '1-one.js': inTransaction } })
  await write('migrations/2-two.js', "export const up = () => { throw new Error('no') }")
  await assert.rejects(two.up(undefined, { step: true }), { code: 'MIGRATION_EXECUTION_FAILED' })

  const before = await one('status')
  const ours = await two.status()
  await write('migrations/2-two.js', counting('two'))
  await two.up(undefined, { step: true })
  const after = await one('status')

  assert.deepEqual(outline(before), ['1-one.js applied', '2-two.js pending', '3-three.js pending'])
  assert.deepEqual(outline(ours), outline(before))
  assert.deepEqual(
    after.map((/** @type {any} */ { batch, checksumOk }) => [batch, checksumOk]),
    [1, 3, 4].map((batch) => [batch, true]),
  )
})

test('what failed under 2.x is pending to 1.3.0', async (t) => {
  const { one, two, write } = await both(t, {
    migrations: { '1-one.js': "export const up = () => { throw new Error('no') }" },
  })
  await assert.rejects(two.up(), { code: 'MIGRATION_EXECUTION_FAILED' })
  await write('migrations/1-one.js', counting('one'))

  assert.deepEqual(outline(await one('status')), ['1-one.js pending'])
  assert.deepEqual(outline(await one('up')), ['1-one.js applied'])
  assert.deepEqual(outline(await two.status()), ['1-one.js applied'])
})

test('a migration that 1.x applies in the middle of our run is skipped', async (t) => {
  /** @type {import('mongodb').Collection | undefined} */
  let changelog
  const hooks = {
    beforeEach: async (/** @type {string} */ name) => {
      if (name !== '2-two.js') return
      await changelog?.createIndex({ name: 1 }, { unique: true })
      await changelog?.insertOne(entryOf1x(name))
    },
  }
  const { database, two, ...rest } = await both(t, { hooks })
  changelog = rest.changelog

  const results = await two.up()

  assert.deepEqual(outline(results), ['1-one.js applied', '2-two.js skipped', '3-three.js applied'])
  assert.deepEqual(await runsOf(database, 'two'), { ups: 0, downs: 0 })
  assert.equal((await database.entry('2-two.js'))?.batch, 9)
})

test('an entry that 1.x replaces while our body runs stays as it left it', async (t) => {
  const replace = `await db.collection('_mmk_migrations').replaceOne(
    { name: '2-two.js' },
    { name: '2-two.js', batch: 9, status: 'applied', appliedAt: new Date(), checksum: 'x' })`
  const { database, two } = await both(t, {
    migrations: { ...three, '2-two.js': counting('two', replace) },
  })

  await assert.rejects(two.up(), { code: 'CHANGELOG_CONFLICT' })

  const entry = await database.entry('2-two.js')
  assert.deepEqual([entry?.batch, entry?.version], [9, undefined])
  assert.equal(await database.entry('3-three.js'), null)
})
