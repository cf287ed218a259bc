import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { lostWarning } from '../helpers/lost.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const upWithTtl = ['up', '--lock-ttl', '1']

/**
 * A holder that was frozen in its first of three bodies, while another took over and did it all.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} first statements of the first body
 */
async function frozenHolder(t, first) {
  const database = await freshDatabase(t)
  const migrations = {
    '1-first.js': counting('1', first),
    '2-second.js': counting('2'),
    '3-third.js': counting('3'),
  }
  const { mmk } = await project(t, migrations, database)
  const holder = mmk(upWithTtl)
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  holder.kill('SIGSTOP')

  const next = mmk([...upWithTtl, '--wait'])
  await poll(async () => (await runsOf(database, '1')).ups === 2, {
    what: 'the next run took over',
    deadlineMs: 20_000,
  })
  await openGate(database)
  const { code, stdout, stderr } = await next.ended
  assert.equal(code, 0, stdout + stderr)
  return { database, holder }
}

test('LEASE-04: a holder that was frozen past its TTL while another did its work starts no further body, records nothing and exits 5', async (t) => {
  const { database, holder } = await frozenHolder(t, waitAtGate)
  const before = await database.entries()
  holder.kill('SIGCONT')
  const { code, stdout, stderr } = await holder.ended

  assert.equal(code, 5, stdout + stderr)
  assert.match(stderr, lostWarning)
  assert.match(stderr, /LOCK_LOST/)
  const runs = await Promise.all(['1', '2', '3'].map((name) => runsOf(database, name)))
  assert.deepEqual(
    runs.map(({ ups }) => ups),
    [2, 1, 1],
  )
  assert.ok(before.every(({ status }) => status === 'applied'))
  assert.deepEqual(await database.entries(), before)
  assert.equal(await database.lock(), null)
})

test('a holder that was frozen leaves alone the lock that another holds when it wakes up', async (t) => {
  const database = await freshDatabase(t)
  const { mmk } = await project(t, { '1-first.js': counting('1', waitAtGate) }, database)
  const holder = mmk(upWithTtl)
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  holder.kill('SIGSTOP')
  const next = mmk([...upWithTtl, '--wait'])
  await poll(async () => (await runsOf(database, '1')).ups === 2, {
    what: 'the next run took over',
    deadlineMs: 20_000,
  })
  const owner = (await database.lock())?.owner

  holder.kill('SIGCONT')
  assert.equal((await holder.ended).code, 5)
  assert.equal((await database.lock())?.owner, owner)
  await openGate(database)

  const { code, stdout, stderr } = await next.ended
  assert.equal(code, 0, stdout + stderr)
  assert.equal((await database.entry('1-first.js'))?.status, 'applied')
})
