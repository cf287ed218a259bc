/**
 * `redo`: one migration back and forth again, under one lock, by the file as it is now.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'

/** @import { MmkConfig, MmkEvent } from 'mongo-migrate-kit' */

const two = { '1-one.js': counting('one'), '2-two.js': counting('two') }

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [migrations]
 * @param {Partial<MmkConfig>} [more]
 */
async function app(t, migrations = two, more = {}) {
  const database = await freshDatabase(t)
  const { migrationsDir, write } = await project(t, migrations)
  /** @type {MmkEvent[]} */
  const events = []
  const onEvent = (/** @type {MmkEvent} */ event) => void events.push(event)
  const config = { ...database.config, migrationsDir, logger: null, onEvent, ...more }
  const kit = new MigratorKit(config)
  t.after(() => kit.disconnect())
  return { database, kit, write, events }
}

/** @param {import('mongo-migrate-kit').RunResult[]} results */
const outline = (results) => results.map(({ file, status }) => `${file} ${status}`)

test('the latest migration is reverted and applied again, as a batch of its own', async (t) => {
  const { database, kit } = await app(t)
  await kit.up()

  const results = await kit.redo()

  assert.deepEqual(outline(results), ['2-two.js reverted', '2-two.js applied'])
  assert.deepEqual(await runsOf(database, 'two'), { ups: 2, downs: 1 })
  assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
  const entry = await database.entry('2-two.js')
  assert.deepEqual([entry?.status, entry?.batch], ['applied', 2])
  assert.deepEqual(
    entry?.history.map((/** @type {{ status: string }} */ { status }) => status),
    ['applied', 'reverted'],
  )
  assert.equal(await database.lock(), null)
})

test('both halves run under one lock', async (t) => {
  const { kit, events } = await app(t)
  await kit.up()
  events.length = 0

  await kit.redo('1-one.js')

  const types = events.map(({ type }) => type)
  assert.equal(types.filter((type) => type === 'lockAcquired').length, 1)
  assert.ok(types.indexOf('lockReleased') > types.lastIndexOf('migrationFinished'))
})

test('hooks around the run are called for each half, as in 1.x', async (t) => {
  /** @type {string[]} */
  const calls = []
  const hooks = {
    beforeAll: () => void calls.push('beforeAll'),
    afterAll: () => void calls.push('afterAll'),
    beforeEach: (/** @type {string} */ name) => void calls.push(name),
  }
  const { kit } = await app(t, two, { hooks })
  await kit.up()
  calls.length = 0

  await kit.redo()

  const half = ['beforeAll', '2-two.js', 'afterAll']
  assert.deepEqual(calls, [...half, ...half])
})

test('a file that was edited runs as it is now, down and up, in the same process', async (t) => {
  const { database, kit, write } = await app(t)
  await kit.up()
  const before = await database.entry('2-two.js')
  await write('migrations/2-two.js', counting('edited'))

  await kit.redo()

  assert.deepEqual(await runsOf(database, 'edited'), { ups: 1, downs: 1 })
  assert.deepEqual(await runsOf(database, 'two'), { ups: 1, downs: 0 })
  assert.notEqual((await database.entry('2-two.js'))?.checksum, before?.checksum)
  const rows = await kit.status()
  assert.ok(rows.every(({ checksumOk }) => checksumOk === true))
})

test('a migration without a down is refused before anything ran', async (t) => {
  const { database, kit } = await app(t, { '1-up.js': 'export const up = () => {}' })
  await kit.up()
  const before = await database.entries()

  await assert.rejects(kit.redo(), { code: 'MIGRATION_IRREVERSIBLE', hint: /nothing was reverted/ })

  assert.deepEqual(await database.entries(), before)
})

test('what the second half would refuse is found before the first half runs', async (t) => {
  const { database, kit, write } = await app(t, two, { strict: true })
  await kit.up()
  await write('migrations/1-one.js', `${counting('one')}// edited\n`)

  await assert.rejects(kit.redo('2-two.js'), { code: 'CHECKSUM_MISMATCH' })

  assert.deepEqual(await runsOf(database, 'two'), { ups: 1, downs: 0 })
})

test('an up that throws says that the down is done', async (t) => {
  const { database, kit, write } = await app(t)
  await kit.up()
  await write(
    'migrations/2-two.js',
    "export const up = () => { throw new Error('no') }\nexport const down = () => {}",
  )

  await assert.rejects(kit.redo(), (/** @type {any} */ error) => {
    assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
    assert.deepEqual(error.context.done, ['2-two.js'])
    assert.equal(error.cause.message, 'no')
    return true
  })

  assert.equal((await database.entry('2-two.js'))?.status, 'failed')
  assert.equal(await database.lock(), null)
})

test('nothing applied is nothing to redo, and an unapplied file is named', async (t) => {
  const { database, kit } = await app(t)
  assert.deepEqual(await kit.redo(), [])
  await assert.rejects(kit.redo('1-one.js'), { code: 'NOT_APPLIED' })
  assert.deepEqual(await database.entries(), [])
})

test('a held lock keeps it from beginning', async (t) => {
  const { database, kit } = await app(t)
  await kit.up()
  await holdLock(database)

  await assert.rejects(kit.redo(), { code: 'LOCK_ALREADY_HELD' })

  assert.deepEqual(await runsOf(database, 'two'), { ups: 1, downs: 0 })
})
