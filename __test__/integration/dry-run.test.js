/**
 * `dryRun`: what a run would do, checked as the run would check it, with nothing written.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { endProfile, profiled, startProfile } from '../helpers/profile.js'
import { project } from '../helpers/project.js'
import { standalone } from '../helpers/servers.js'

/** @import { MmkConfig, StatusRow } from 'mongo-migrate-kit' */

const three = {
  '1-one.js': counting('one'),
  '2-two.js': counting('two'),
  '3-three.js': counting('three'),
}

/**
 * @param {import('node:test').TestContext} t
 * @param {{ migrations?: Record<string, string>, uri?: string } & Partial<MmkConfig>} [options]
 */
async function app(t, { migrations = three, uri, ...more } = {}) {
  const database = await freshDatabase(t, uri)
  const { migrationsDir, write } = await project(t, migrations)
  const kit = new MigratorKit({ ...database.config, migrationsDir, logger: null, ...more })
  t.after(() => kit.disconnect())
  return { database, kit, write }
}

/** @param {StatusRow[]} rows */
const files = (rows) => rows.map(({ file }) => file)

test('up lists what is pending in the order of the run, and creates nothing', async (t) => {
  const { database, kit } = await app(t)

  const rows = await kit.dryRun('up')

  assert.deepEqual(files(rows), ['1-one.js', '2-two.js', '3-three.js'])
  assert.ok(rows.every(({ status, state }) => status === 'pending' && state === 'pending'))
  assert.deepEqual(await database.db.listCollections().toArray(), [])
})

test('up takes a file or a last file, down takes steps, a batch or a file to keep', async (t) => {
  const { database, kit } = await app(t)
  assert.deepEqual(files(await kit.dryRun('up', '2-two.js')), ['2-two.js'])
  assert.deepEqual(files(await kit.dryRun('up', undefined, { to: '2-two.js' })), [
    '1-one.js',
    '2-two.js',
  ])
  await kit.up('1-one.js')
  await kit.up()

  assert.deepEqual(files(await kit.dryRun('down')), ['3-three.js', '2-two.js'])
  assert.deepEqual(files(await kit.dryRun('down', undefined, { steps: 1 })), ['3-three.js'])
  assert.deepEqual(files(await kit.dryRun('down', undefined, { batch: 1 })), ['1-one.js'])
  assert.deepEqual(files(await kit.dryRun('down', undefined, { to: '2-two.js' })), ['3-three.js'])
  assert.deepEqual(await runsOf(database, 'three'), { ups: 1, downs: 0 })
})

test('LOG-02: nothing that it sends writes, and the run then does what it said', async (t) => {
  const { database, kit } = await app(t)
  await kit.up('1-one.js')
  await startProfile(database)
  const up = await kit.dryRun('up')
  const down = await kit.dryRun('down')
  await kit.status()
  await endProfile(database)

  const commands = await profiled(database)
  const reads = ['find', 'aggregate', 'hello', 'listCollections', 'profile']
  const sent = commands.map(({ op, command }) =>
    op === 'query' ? 'find' : Object.keys(command)[0],
  )
  assert.ok(sent.includes('find'))
  assert.deepEqual(
    sent.filter((name) => !reads.includes(String(name))),
    [],
  )
  assert.deepEqual(
    (await kit.down()).map(({ file }) => file),
    files(down),
  )
  await kit.up('1-one.js')
  assert.deepEqual(
    (await kit.up()).map(({ file }) => file),
    files(up),
  )
})

test('it neither takes the lock nor waits for the one who has it', async (t) => {
  const { database, kit } = await app(t)
  const held = await holdLock(database)

  assert.equal((await kit.dryRun('up')).length, 3)

  assert.equal((await database.lock())?.owner, held.owner)
})

test('a file that can not be loaded is found, and one that is not applied is named', async (t) => {
  const { kit, write } = await app(t)
  await assert.rejects(kit.dryRun('down', '1-one.js'), { code: 'NOT_APPLIED' })
  await write('migrations/3-three.js', 'export const up = (')
  await assert.rejects(kit.dryRun('up'), { code: 'MIGRATION_LOAD_FAILED' })
})

test('transactions on a standalone are refused as the run would refuse them', async (t) => {
  const { kit } = await app(t, { uri: standalone, useTransaction: true })
  await assert.rejects(kit.dryRun('up'), { code: 'TRANSACTIONS_UNSUPPORTED' })
})

test('an interrupted down is a refusal, unless its run may still be alive', async (t) => {
  const { database, kit } = await app(t)
  await kit.up()
  const changelog = database.db.collection('_mmk_migrations')
  const entry = await database.entry('1-one.js')
  const running = { status: 'running', direction: 'down', runId: 'somebody-else' }
  await changelog.updateOne({ _id: entry?._id }, { $set: running })

  await assert.rejects(kit.dryRun('up'), { code: 'MIGRATION_INTERRUPTED' })

  await holdLock(database, { runId: 'somebody-else' })
  assert.deepEqual(files(await kit.dryRun('up')), ['1-one.js'])
})

test('arguments that contradict each other are refused', async (t) => {
  const { kit } = await app(t)
  const sideways = /** @type {any} */ ('sideways')
  const invalid = { code: 'INVALID_ARGUMENT' }
  await assert.rejects(kit.dryRun(sideways), invalid)
  await assert.rejects(kit.dryRun('up', undefined, { steps: 1 }), invalid)
  await assert.rejects(kit.dryRun('up', '1-one.js', { to: '2-two.js' }), invalid)
  await assert.rejects(kit.dryRun('down', '1-one.js', { to: '2-two.js' }), invalid)
})
