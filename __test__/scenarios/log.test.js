/**
 * Scenarios LOG of docs/scenarios.md: what is recorded, and what a caller is told.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { oneX } from '../helpers/one-x.js'
import { endProfile, profiled, startProfile } from '../helpers/profile.js'

/** @import { MmkError } from 'mongo-migrate-kit' */

const three = {
  '1-one.js': counting('one'),
  '2-two.js': counting('two'),
  '3-three.js': counting('three'),
}

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [migrations]
 */
async function app(t, migrations = three) {
  const setting = await api(t, migrations)
  const kit = new MigratorKit(setting.config)
  t.after(() => kit.disconnect())
  return { ...setting, kit }
}

/** @param {{ file: string, status: string }[]} rows */
const outline = (rows) => rows.map(({ file, status }) => `${file} ${status}`)

/** @param {Promise<unknown>} failing @returns {Promise<MmkError>} */
const failure = (failing) =>
  failing.then(
    () => assert.fail('it resolved'),
    (error) => error,
  )

test('LOG-01: after a failure status says what happened, and the mended file runs without a hand on the entries', async (t) => {
  const half = `await db.collection('seen').insertOne({}); throw new Error('half-way')`
  const {
    kit,
    app: project,
    database,
  } = await app(t, { ...three, '2-two.js': counting('two', half) })
  await failure(kit.up())

  const rows = await kit.status()
  assert.deepEqual(
    rows.map(({ state }) => state),
    ['applied', 'failed', 'pending'],
  )
  assert.deepEqual(rows[1]?.error, { name: 'Error', message: 'half-way' })
  assert.ok(rows[1]?.startedAt instanceof Date)

  await project.write('migrations/2-two.js', counting('two'))
  assert.deepEqual(outline(await kit.up()), ['2-two.js applied', '3-three.js applied'])
  assert.equal((await kit.status())[1]?.checksumOk, true)
  assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
})

test('LOG-03: the promise settles after the last entry is written, and rejects with what was thrown', async (t) => {
  const {
    config,
    database,
    app: project,
  } = await app(t, {
    '1-slow.js': counting('slow', 'await new Promise((resolve) => setTimeout(resolve, 300))'),
  })
  const { applied } = await runMigrations(config)
  assert.ok((applied[0]?.duration ?? 0) >= 300)
  assert.equal((await database.entry('1-slow.js'))?.status, 'applied')
  assert.equal(await database.lock(), null)

  const key = `rejected ${database.name}`
  const thrown = `globalThis[${JSON.stringify(key)}] = new TypeError('later')`
  await project.write(
    'migrations/2-late.js',
    `export const up = () => new Promise((_, no) => setTimeout(() => no(${thrown}), 50))`,
  )
  const error = await failure(runMigrations(config))
  assert.equal(error.cause, Reflect.get(globalThis, key))
  assert.match(error.message, /2-late\.js/)
  assert.equal((await database.entry('2-late.js'))?.status, 'failed')
})

test('LOG-04: the last run is undone as a whole by the command line and by the API', async (t) => {
  const { kit, app: project } = await app(t)
  const last = ['5-five.js reverted', '4-four.js reverted']
  await kit.up()
  await project.write('migrations/4-four.js', counting('four'))
  await project.write('migrations/5-five.js', counting('five'))

  await kit.up()
  assert.deepEqual(outline(await kit.down()), last)
  await kit.up()
  const end = await project.mmk(['down', '--json']).ended

  assert.equal(end.code, 0, end.stderr)
  assert.deepEqual(outline(JSON.parse(end.stdout)), last)
  assert.equal((await kit.list('applied')).length, 3)
})

test('LOG-05: a migration that failed without a transaction is not undone by itself, and the error says so', async (t) => {
  const half = `
    await db.collection('rows').insertMany(Array.from({ length: 10 }, () => ({})))
    throw new Error('half-way')`
  const { app: project, database } = await app(t, { '1-rows.js': counting('rows', half) })

  const { code, stderr } = await project.mmk(['up']).ended

  assert.equal(code, 1, stderr)
  assert.match(stderr, /what it wrote before it failed is still there; fix it and run again/)
  assert.equal(await database.db.collection('rows').countDocuments(), 10)
  assert.deepEqual(await runsOf(database, 'rows'), { ups: 1, downs: 0 })
})

test('LOG-06: what is applied stays applied, over many runs and the upgrade, in a changelog of another name too', async (t) => {
  for (const migrationsCollection of ['_mmk_migrations', 'my_changes']) {
    const { app: project, config, database } = await app(t)
    const env = { MMK_COLLECTION: migrationsCollection }
    const before = await oneX(project, ['up'], env).ended
    assert.equal(before.code, 0, before.stdout + before.stderr)
    const changelog = database.db.collection(migrationsCollection)
    const entries = await changelog.find().sort({ name: 1 }).toArray()
    assert.equal(entries.length, 3)

    for (let run = 1; run <= 5; run += 1) {
      const { upToDate } = await runMigrations({ ...config, migrationsCollection })
      assert.equal(upToDate, true)
    }

    assert.deepEqual(await changelog.find().sort({ name: 1 }).toArray(), entries)
    assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
  }
})

test('LOG-07: no run makes, drops or indexes a collection once the first has been', async (t) => {
  const { kit, database } = await app(t)
  await kit.up()
  await startProfile(database)
  for (let round = 1; round <= 10; round += 1) {
    assert.equal((await kit.down()).length, 3)
    assert.equal((await kit.up()).length, 3)
  }
  await endProfile(database)

  const commands = (await profiled(database)).map(({ command }) => Object.keys(command)[0] ?? '')
  assert.ok(commands.includes('findAndModify') || commands.includes('findandmodify'), 'it saw them')
  const ddl = commands.filter((name) => /^(?:create|drop|rename|collMod)/i.test(name))
  assert.deepEqual(ddl, [])
})
