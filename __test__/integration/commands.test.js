/**
 * What a run costs the server, counted by the server's own profiler.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pendingMigrations, runMigrations } from 'mongo-migrate-kit'
import { counting } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

/**
 * @param {import('../helpers/database.js').Database} database
 * @param {() => Promise<unknown>} action
 * @returns {Promise<string[]>} the commands on that database, such as `find _mmk_migrations`
 */
async function commandsOf({ db, name }, action) {
  await db.command({ profile: 2 })
  await action()
  await db.command({ profile: 0 })
  const ns = { $nin: [`${name}.system.profile`, `${name}.$cmd`, name] }
  const seen = await db.collection('system.profile').find({ ns }).sort({ ts: 1 }).toArray()
  await db.collection('system.profile').drop()
  return seen.map((each) => `${Object.keys(each.command)[0]} ${each.ns.slice(name.length + 1)}`)
}

test('once everything is applied a boot is one read, and pendingMigrations only reads', async (t) => {
  const database = await freshDatabase(t)
  const { migrationsDir } = await project(t, { '1-one.js': counting('one') })
  const config = { ...database.config, migrationsDir, logger: null }
  const first = await commandsOf(database, () => runMigrations(config))

  const boot = await commandsOf(database, () => runMigrations(config))
  const pending = await commandsOf(database, () => pendingMigrations(config))

  assert.ok(first.length > 1, 'the profiler saw the first run')
  assert.deepEqual(boot, ['find _mmk_migrations'])
  assert.ok(
    pending.every((command) => command.startsWith('find ')),
    pending.join(),
  )
})
