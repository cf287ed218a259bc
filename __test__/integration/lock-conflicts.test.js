/**
 * Somebody moves an entry between the plan and the claim. The lock can't keep them from it: they may
 * run without one, or with an old version.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'

/**
 * A migration that failed once, and is moved by another run just before it is claimed again.
 *
 * @param {import('node:test').TestContext} t
 * @param {import('mongodb').Document} change what the other run makes of the entry
 */
async function movedMeanwhile(t, change) {
  const failing = `export function up() { throw new Error('the first time') }`
  const { database, app, config, onEvent, eventsOf } = await api(t, { '1-moved.js': failing })
  await assert.rejects(runMigrations(config), { code: 'MIGRATION_EXECUTION_FAILED' })
  const failed = await database.entry('1-moved.js')
  await app.write('migrations/1-moved.js', counting('moved'))
  const changelog = database.db.collection('_mmk_migrations')
  const beforeEach = () => changelog.updateOne({ name: '1-moved.js' }, change)
  const run = runMigrations({ ...config, onEvent, hooks: { beforeEach } })
  return { database, failed, run, eventsOf }
}

test('an entry that another run has applied meanwhile is skipped, counted and told of', async (t) => {
  const change = { $set: { status: 'applied', runId: 'another' }, $inc: { version: 1 } }
  const { database, failed, run, eventsOf } = await movedMeanwhile(t, change)

  const { applied, metrics } = await run

  assert.deepEqual(
    applied.map(({ file, status, reason }) => [file, status, reason]),
    [['1-moved.js', 'skipped', 'Applied by another run']],
  )
  assert.equal(metrics.claimConflicts, 1)
  const version = Number(failed?.version)
  const conflicts = eventsOf('claimConflict')
  assert.equal(conflicts.length, 1)
  assert.equal(conflicts[0]?.name, '1-moved.js')
  assert.deepEqual(conflicts[0]?.expected, { status: 'failed', version, runId: failed?.runId })
  const found = { status: 'applied', version: version + 1, runId: 'another' }
  assert.deepEqual(conflicts[0]?.found, found)
  assert.deepEqual(await runsOf(database, 'moved'), { ups: 0, downs: 0 })
})

test('an entry that another run is at meanwhile stops the run with what was found', async (t) => {
  const change = { $set: { status: 'running', runId: 'another' }, $inc: { version: 1 } }
  const { database, run, eventsOf } = await movedMeanwhile(t, change)

  await assert.rejects(run, (/** @type {any} */ error) => {
    assert.equal(error.code, 'CHANGELOG_CONFLICT')
    assert.equal(error.context.found.runId, 'another')
    assert.equal(error.context.metrics.claimConflicts, 1)
    return true
  })

  assert.equal(eventsOf('claimConflict')[0]?.found?.status, 'running')
  assert.deepEqual(await runsOf(database, 'moved'), { ups: 0, downs: 0 })
  assert.equal((await database.entry('1-moved.js'))?.runId, 'another')
  assert.equal(await database.lock(), null)
})

test('an entry that is moved under a running body is not overwritten when the body is done', async (t) => {
  const stealing = `
    await db.collection('_mmk_migrations').updateOne(
      { name: '1-stolen.js' }, { $set: { runId: 'another' }, $inc: { version: 1 } })`
  const { database, config, onEvent, eventsOf } = await api(t, {
    '1-stolen.js': counting('stolen', stealing),
  })

  await assert.rejects(runMigrations({ ...config, onEvent }), { code: 'CHANGELOG_CONFLICT' })

  const entry = await database.entry('1-stolen.js')
  assert.equal(entry?.status, 'running')
  assert.equal(entry?.runId, 'another')
  assert.equal(eventsOf('claimConflict')[0]?.expected.status, 'running')
})

test('a run without trouble has quiet metrics', async (t) => {
  const { config } = await api(t, { '1.js': counting('1') })

  const { metrics } = await runMigrations(config)

  const { claimConflicts, takeovers, orphansKilled, lockWaitMs } = metrics
  const quiet = { claimConflicts: 0, takeovers: 0, orphansKilled: 0, lockWaitMs: 0 }
  assert.deepEqual({ claimConflicts, takeovers, orphansKilled, lockWaitMs }, quiet)
  assert.ok(Number.isInteger(metrics.renewals))
})

for (const [field, value] of Object.entries({ name: '0-renamed.js', namespace: 'elsewhere' })) {
  test(`an entry whose ${field} was changed by hand is no reason to skip what it was about`, async (t) => {
    const { config, database } = await api(t, { '1-one.js': counting('one') })
    await runMigrations(config)
    const changelog = database.db.collection('_mmk_migrations')
    await changelog.updateOne({ name: '1-one.js' }, { $set: { [field]: value } })

    await assert.rejects(runMigrations(config), {
      code: 'DATABASE_ERROR',
      message:
        /claiming a migration: the entry with the _id "\/1-one\.js" has the name and namespace of/,
    })

    assert.equal((await runsOf(database, 'one')).ups, 1)
    assert.equal(await database.lock(), null)
  })
}
