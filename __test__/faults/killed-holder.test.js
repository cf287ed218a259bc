import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const ttlMs = 2000
const upWithTtl = ['up', '--lock-ttl', `${ttlMs / 1000}`]

/**
 * A run that was killed with -9 in its second of three migrations.
 *
 * @param {import('node:test').TestContext} t
 */
async function killedRun(t) {
  const database = await freshDatabase(t)
  const migrations = {
    '1-first.js': counting('1'),
    '2-slow.js': counting('2', waitAtGate),
    '3-last.js': counting('3'),
  }
  const app = await project(t, migrations, database)
  const holder = app.mmk(upWithTtl)
  await poll(async () => (await runsOf(database, '2')).ups === 1, { what: 'the slow body began' })
  holder.kill('SIGKILL')
  await holder.ended
  const lock = await database.lock()
  assert.ok(lock, 'a killed holder leaves its lock')
  return { database, app, lastRenewal: lock.lockedAt }
}

test('status shows the migration of a killed run as interrupted once its lease is over', async (t) => {
  const { app } = await killedRun(t)

  const rows = await poll(
    async () => {
      const { code, stdout, stderr } = await app.mmk(['status', '--json']).ended
      assert.equal(code, 0, stderr)
      const found = JSON.parse(stdout)
      return found[1].state === 'interrupted' && found
    },
    { what: 'status says interrupted', deadlineMs: ttlMs + 10_000 },
  )

  assert.deepEqual(
    rows.map((/** @type {any} */ { file, status, state }) => [file, status, state]),
    [
      ['1-first.js', 'applied', 'applied'],
      ['2-slow.js', 'pending', 'interrupted'],
      ['3-last.js', 'pending', 'pending'],
    ],
  )
  const { stdout } = await app.mmk(['status']).ended
  assert.match(stdout, /2-slow\.js.*interrupted/)
})

test('REL-02: the next run takes over at most one TTL after the last renewal and says what it runs again', async (t) => {
  const { database, app, lastRenewal } = await killedRun(t)
  const next = app.mmk([...upWithTtl, '--wait'])
  const again = await poll(async () => (await runsOf(database, '2')).ups === 2 && database.now(), {
    what: 'the slow body began again',
    deadlineMs: ttlMs + 15_000,
  })
  await openGate(database)
  const { code, stdout, stderr } = await next.ended

  assert.equal(code, 0, stdout + stderr)
  const late = again.getTime() - lastRenewal.getTime() - ttlMs
  assert.ok(late <= 2000, `it began ${late} ms after the lease was over`)
  assert.match(stdout + stderr, /again.*2-slow\.js.*interrupted/i)
  assert.deepEqual(await Promise.all(['1', '2', '3'].map((name) => runsOf(database, name))), [
    { ups: 1, downs: 0 },
    { ups: 2, downs: 0 },
    { ups: 1, downs: 0 },
  ])
  assert.ok((await database.entries()).every(({ status }) => status === 'applied'))
})
