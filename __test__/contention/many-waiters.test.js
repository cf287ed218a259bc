/**
 * A rolling deploy: one holder with a slow migration, and a crowd that waits for it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { endProfile, profiled, startProfile } from '../helpers/profile.js'
import { project } from '../helpers/project.js'
import { lockWatched } from '../helpers/watching.js'

const waiters = 20
const watchedMs = 5000

const app = `
import { runMigrations } from 'mongo-migrate-kit'
await runMigrations({ onLockHeld: 'wait' })
`

test(`REL-04: ${waiters} that wait with all defaults ask little, and all end well without a storm`, async (t) => {
  const database = await freshDatabase(t)
  const { mmk, node, write } = await project(t, { '1.js': counting('1', waitAtGate) }, database)
  await write('app.js', app)
  const holder = mmk(['up'])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  const crowd = Array.from({ length: waiters }, () => node('app.js', { timeoutMs: 120_000 }))
  await lockWatched(database, waiters)

  const ours = { ns: { $in: [`${database.name}._mmk_locks`, `${database.name}._mmk_migrations`] } }
  await startProfile(database)
  await new Promise((resolve) => setTimeout(resolve, watchedMs))
  await endProfile(database)
  const asked = (await profiled(database, ours)).length / waiters / (watchedMs / 1000)

  await database.db.collection('system.profile').drop()
  await startProfile(database)
  await openGate(database)
  const ends = await Promise.all([holder, ...crowd].map(({ ended }) => ended))
  await endProfile(database)
  const toLeave = (await profiled(database, ours)).length / waiters

  for (const { code, stdout, stderr } of ends) assert.equal(code, 0, stdout + stderr)
  assert.equal((await runsOf(database, '1')).ups, 1)
  t.diagnostic(`commands per waiter: ${asked.toFixed(2)} a second; ${toLeave.toFixed(1)} to leave`)
  assert.ok(asked <= 1, `each asked ${asked} times a second`)
  assert.ok(toLeave <= 10, `each asked ${toLeave} times after the release`)
})
