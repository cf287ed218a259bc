/**
 * `mark`: what a person found out goes into the changelog, and nothing runs.
 */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'

/** @import { MmkConfig } from 'mongo-migrate-kit' */

const two = { '1-one.js': counting('one'), '2-two.js': counting('two') }
const failing = "export const up = () => { throw new Error('half done') }"

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [migrations]
 * @param {Partial<MmkConfig>} [more]
 */
async function app(t, migrations = two, more = {}) {
  const database = await freshDatabase(t)
  const { migrationsDir, write } = await project(t, migrations)
  const kit = new MigratorKit({ ...database.config, migrationsDir, logger: null, ...more })
  t.after(() => kit.disconnect())
  return { database, kit, write, migrationsDir }
}

test('a migration that was done by hand is marked as applied and does not run', async (t) => {
  const { database, kit } = await app(t)

  const result = await kit.mark('1-one.js', 'applied', { reason: 'done on the shell' })
  const applied = await kit.up()

  const { file, status, batch, reason } = result
  assert.deepEqual([file, status, batch], ['1-one.js', 'applied', 1])
  assert.equal(reason, 'done on the shell')
  assert.deepEqual(
    applied.map((each) => [each.file, each.batch]),
    [['2-two.js', 2]],
  )
  assert.deepEqual(await runsOf(database, 'one'), { ups: 0, downs: 0 })
  const entry = await database.entry('1-one.js')
  assert.deepEqual([entry?.status, entry?.duration, entry?.origin], ['applied', 0, 'mark'])
  assert.equal(entry?.reason, 'done on the shell')
  assert.match(entry?.checksum, /^[0-9a-f]{64}$/)
  assert.ok(entry?.appliedAt instanceof Date)
  assert.equal(await database.lock(), null)
})

test('SUM-01: an intended edit is accepted: strict runs go on, and batch and time stay', async (t) => {
  const { database, kit, write } = await app(t, two, { strict: true })
  await kit.up()
  const before = await database.entry('1-one.js')
  await write('migrations/1-one.js', `${counting('one')}// a comment\n`)
  await assert.rejects(kit.up(), { code: 'CHECKSUM_MISMATCH' })

  await kit.mark('1-one.js', 'applied', { reason: 'only a comment' })

  assert.deepEqual(await kit.up(), [])
  const after = await database.entry('1-one.js')
  assert.notEqual(after?.checksum, before?.checksum)
  assert.deepEqual([after?.batch, after?.appliedAt], [before?.batch, before?.appliedAt])
  assert.equal(after?.history[0].checksum, before?.checksum)
})

test('a failed migration that may not run again by itself is let go by a mark as pending', async (t) => {
  const { kit, write, database } = await app(t, { '1-one.js': failing }, { onInterrupted: 'stop' })
  await assert.rejects(kit.up(), { code: 'MIGRATION_EXECUTION_FAILED' })
  await write('migrations/1-one.js', counting('one'))
  await assert.rejects(kit.up(), { code: 'MIGRATION_INTERRUPTED', hint: /mmk mark/ })

  const { status } = await kit.mark('1-one.js', 'pending', { reason: 'cleaned up' })
  const applied = await kit.up()

  assert.equal(status, 'reverted')
  assert.equal(applied.length, 1)
  const entry = await database.entry('1-one.js')
  assert.equal(entry?.reason, undefined)
  assert.deepEqual(
    entry?.history.map((/** @type {any} */ past) => [past.status, past.reason]),
    [
      ['failed', undefined],
      ['reverted', 'cleaned up'],
    ],
  )
})

test('a mark as pending needs no file, and what it is about runs again', async (t) => {
  const { database, kit, migrationsDir } = await app(t)
  await kit.up()
  await rm(join(migrationsDir, '1-one.js'))

  assert.equal((await kit.mark('1-one.js', 'pending')).status, 'reverted')
  await kit.mark('2-two.js', 'pending')
  await kit.up()

  assert.equal((await database.entry('1-one.js'))?.status, 'reverted')
  assert.deepEqual(await runsOf(database, 'two'), { ups: 2, downs: 0 })
})

test('saying what is so already changes nothing', async (t) => {
  const { database, kit } = await app(t)
  await kit.up('1-one.js')
  const before = await database.entries()

  const results = [await kit.mark('1-one.js', 'applied'), await kit.mark('2-two.js', 'pending')]

  assert.deepEqual(
    results.map(({ status, reason }) => [status, reason]),
    [
      ['skipped', 'Already applied'],
      ['skipped', 'Already pending'],
    ],
  )
  assert.deepEqual(await database.entries(), before)
})

test('an entry that 1.x wrote is marked in its place', async (t) => {
  const { database, kit } = await app(t)
  const changelog = database.db.collection('_mmk_migrations')
  const appliedAt = new Date('2024-05-06T07:08:09Z')
  const legacy = { name: '1-one.js', batch: 3, status: 'applied', appliedAt, checksum: 'old' }
  const { insertedId } = await changelog.insertOne(legacy)

  await kit.mark('1-one.js', 'applied')

  const [entry, ...others] = await database.entries()
  assert.deepEqual(others, [])
  assert.deepEqual([entry?._id, entry?.batch, entry?.appliedAt], [insertedId, 3, appliedAt])
  assert.notEqual(entry?.checksum, 'old')
})

test('what it can not take is refused, and says why', async (t) => {
  const { database, kit } = await app(t)
  const wrong = /** @type {any} */ ('done')
  await assert.rejects(kit.mark('1-one.js', wrong), { code: 'INVALID_ARGUMENT', message: /"done"/ })
  await assert.rejects(kit.mark('1-one.js', 'applied', { reason: ' ' }), { message: /`reason`/ })
  await assert.rejects(kit.mark('../1-one.js', 'applied'), { code: 'MIGRATION_INVALID_NAME' })
  await assert.rejects(kit.mark('9-nine.js', 'applied'), { code: 'MIGRATION_FILE_NOT_FOUND' })
  assert.deepEqual(await database.entries(), [])
})

test('a held lock keeps the changelog as it is', async (t) => {
  const { database, kit } = await app(t)
  await holdLock(database)

  await assert.rejects(kit.mark('1-one.js', 'applied'), { code: 'LOCK_ALREADY_HELD' })

  assert.deepEqual(await database.entries(), [])
})
