/**
 * What a run costs the server: every command, read off the wire.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, pendingMigrations, runMigrations } from 'mongo-migrate-kit'
import { counting } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'
import { replicaSet } from '../helpers/servers.js'
import { startWire } from '../helpers/wire.js'

/** The appNames of the connection for reading and the changelog, of the lock's, and of the bodies'. */
const [changelog, lock, bodies, anybody] = [/^mmk$/, /^mmk-hb\//, /^mmk\//, /^/]

/** The plan, other tools' changelogs, and the plan once more under the lock. */
const beforeTheFirst = ['find _mmk_migrations', 'listCollections', 'find _mmk_migrations']

/**
 * @param {number} count
 * @param {string} [more]
 * @returns {Record<string, string>} migrations that ask nothing of the server
 */
function trivial(count, more = '') {
  const source = `${more}\nexport async function up() {}\nexport async function down() {}\n`
  const names = Array.from({ length: count }, (_, index) => `${100 + index}-trivial.js`)
  return Object.fromEntries(names.map((name) => [name, source]))
}

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 */
async function readyToRun(t, migrations) {
  const database = await freshDatabase(t)
  const wire = await startWire(t, replicaSet)
  const { migrationsDir } = await project(t, migrations)
  const config = { ...database.config, uri: wire.uri, migrationsDir, logger: null }
  return { database, config, wire }
}

test('once everything is applied a boot is one read, and pendingMigrations only reads', async (t) => {
  const { config, wire } = await readyToRun(t, { '1-one.js': counting('one') })
  await runMigrations(config)
  assert.ok(wire.sentBy(anybody).length > 1, 'the first run was seen')

  await runMigrations(config)
  assert.deepEqual(wire.sentBy(anybody), ['find _mmk_migrations'])
  await pendingMigrations(config)
  const read = ['find _mmk_locks', 'find _mmk_migrations']
  assert.deepEqual(wire.sentBy(anybody).sort(), read)
})

for (const count of [5, 25]) {
  test(`${count} migrations cost the changelog ${count} commands and four`, async (t) => {
    const { database, config, wire } = await readyToRun(t, trivial(count))
    await runMigrations(config)

    const commands = wire.sentBy(changelog)
    assert.deepEqual(commands, [
      ...beforeTheFirst,
      'findAndModify _mmk_migrations',
      ...Array(count - 1).fill('update _mmk_migrations'),
      'findAndModify _mmk_migrations',
    ])
    assert.equal(commands.length, count + 4)
    assert.deepEqual(wire.sentBy(bodies), [])
    const entries = await database.entries()
    const facts = entries.map(({ status, version, batch }) => ({ status, version, batch }))
    assert.deepEqual(facts, Array(count).fill({ status: 'applied', version: 2, batch: 1 }))
  })
}

test('before the first migration of ours, each collection of the app costs one look', async (t) => {
  const { database, config, wire } = await readyToRun(t, trivial(1))
  for (const name of ['orders', 'users']) await database.db.collection(name).insertOne({})
  await runMigrations(config)

  const looks = wire.sentBy(changelog).slice(1, 4).sort()
  assert.deepEqual(looks, ['find orders', 'find users', 'listCollections'])
})

test('the lock costs eleven commands, however many migrations there are', async (t) => {
  const { config, wire } = await readyToRun(t, trivial(2))
  await runMigrations(config)
  // What time brings along is left out: the watch, which a run of half a second opens.
  const watch = /^(aggregate \$changeStream|getMore|killCursors)/
  assert.deepEqual(
    wire.sentBy(lock).filter((command) => !watch.test(command)),
    [
      // Acquire: which election is it, and the lease.
      'hello',
      'findAndModify _mmk_locks',
      // Arm: the runs that were not settled, the election, the lease, the fence, its token in the lease.
      'find _mmk_locks',
      'hello',
      'findAndModify _mmk_locks',
      'findAndModify _mmk_locks',
      'update _mmk_locks',
      'commitTransaction',
      // Release: is anything left running? Off the register, and away.
      'aggregate $currentOp',
      'findAndModify _mmk_locks',
      'delete _mmk_locks',
    ],
  )
})

test('migrations in transactions cost four commands each', async (t) => {
  const count = 3
  const inTransaction = trivial(count, 'export const useTransaction = true')
  const { config, wire } = await readyToRun(t, inTransaction)
  await runMigrations(config)

  const inBody = ['update _mmk_migrations', 'update _mmk_locks', 'commitTransaction']
  assert.deepEqual(wire.sentBy(bodies), [...inBody, ...inBody, ...inBody])
  const claims = Array(count).fill('findAndModify _mmk_migrations')
  const asked = wire.sentBy(changelog).filter((command) => command !== 'hello')
  assert.deepEqual(asked, [...beforeTheFirst, ...claims])
})

test('a status reads the changelog and the lock', async (t) => {
  const { config, wire } = await readyToRun(t, trivial(2))
  await runMigrations(config)
  wire.sentBy(anybody)
  const kit = new MigratorKit(config)
  await kit.status()
  await kit.disconnect()
  assert.deepEqual(wire.sentBy(anybody).sort(), ['find _mmk_locks', 'find _mmk_migrations'])
})

test('with hooks between them, the next migration is not claimed before they are done', async (t) => {
  const { database, config, wire } = await readyToRun(t, trivial(3))
  /** @type {string[]} */
  const order = []
  const note = async (/** @type {string} */ what) => {
    const states = (await database.entries()).map(({ status }) => status)
    order.push(`${what} ${states}`)
  }
  const hooks = {
    beforeEach: (/** @type {string} */ name) => note(`before ${name}`),
    afterEach: async (/** @type {string} */ name) => {
      await note(`after ${name}`)
      if (name === '101-trivial.js') throw new Error('enough')
    },
  }
  await assert.rejects(runMigrations({ ...config, hooks }), { code: 'HOOK_FAILED' })
  assert.deepEqual(order, [
    'before 100-trivial.js ',
    'after 100-trivial.js applied',
    'before 101-trivial.js applied',
    'after 101-trivial.js applied,applied',
  ])
  assert.equal((await database.entries()).length, 2)
  const each = Array(2).fill('findAndModify _mmk_migrations')
  assert.deepEqual(wire.sentBy(changelog), [...beforeTheFirst, ...each, ...each])
})

test('nothing is claimed after a migration whose entry somebody moved or deleted', async (t) => {
  for (const meddle of [
    `updateOne({ name: '1-one.js' }, { $set: { version: 9 } })`,
    `deleteOne({ name: '1-one.js' })`,
  ]) {
    const { database, config } = await readyToRun(t, {
      '1-one.js': counting('one', `await db.collection('_mmk_migrations').${meddle}`),
      '2-two.js': counting('two'),
    })
    await assert.rejects(runMigrations(config), { code: 'CHANGELOG_CONFLICT' })
    assert.equal(await database.entry('2-two.js'), null)
    assert.equal(
      (await database.entry('1-one.js'))?.status,
      meddle.includes('delete') ? undefined : 'running',
    )
  }
})

test('a next migration that another run has applied meanwhile is skipped, and the run goes on', async (t) => {
  const entry = `{ _id: '/2-two.js', name: '2-two.js', status: 'applied', version: 2, batch: 7 }`
  const { database, config } = await readyToRun(t, {
    '1-one.js': counting('one', `await db.collection('_mmk_migrations').insertOne(${entry})`),
    '2-two.js': counting('two'),
    '3-three.js': counting('three'),
  })
  const { applied } = await runMigrations(config)
  assert.deepEqual(
    applied.map(({ file, status }) => `${file} ${status}`),
    ['1-one.js applied', '2-two.js skipped', '3-three.js applied'],
  )
  assert.equal((await database.entry('2-two.js'))?.batch, 7)
})
