import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const ttlSeconds = '2'
const migrations = { '1-long.js': counting('1', waitAtGate), '2-next.js': counting('2') }

test('a run whose lock was released by an operator stops, records nothing more and exits 5', async (t) => {
  const database = await freshDatabase(t)
  const { mmk } = await project(t, migrations, database)
  const holder = mmk(['up', '--lock-ttl', ttlSeconds])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })

  const unlock = await mmk(['unlock', '--yes']).ended
  const { code, stdout, stderr } = await holder.ended

  assert.equal(unlock.code, 0, unlock.stdout + unlock.stderr)
  assert.equal(code, 5, stdout + stderr)
  assert.match(
    stderr,
    /⚠ Lost the migration lock mid-run \(renewal failed\) — another run may have started/,
  )
  assert.match(stderr, /LOCK_LOST/)
  assert.notEqual((await database.entry('1-long.js'))?.status, 'applied')
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
})

test('a run that lost its lock to another leaves that one in peace', async (t) => {
  const database = await freshDatabase(t)
  const { mmk } = await project(t, migrations, database)
  const holder = mmk(['up', '--lock-ttl', ttlSeconds])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  const first = await database.lock()
  await mmk(['unlock', '--yes']).ended

  mmk(['up', '--lock-ttl', ttlSeconds])
  const second = await poll(
    async () => {
      const lock = await database.lock()
      return lock && lock.owner !== first?.owner && lock.owner
    },
    { what: 'another run has the lock' },
  )
  const { code, stdout, stderr } = await holder.ended

  assert.equal(code, 5, stdout + stderr)
  assert.equal((await database.lock())?.owner, second)
})

test('a body that never settles does not keep a process alive whose lock is lost', async (t) => {
  const database = await freshDatabase(t)
  const { mmk } = await project(
    t,
    { '1-stuck.js': counting('1', 'await new Promise(() => {})'), '2-next.js': counting('2') },
    database,
  )
  const holder = mmk(['up', '--lock-ttl', ttlSeconds], { timeoutMs: 30_000 })
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })

  await mmk(['unlock', '--yes']).ended
  const { code, stdout, stderr } = await holder.ended

  assert.equal(code, 5, stdout + stderr)
  assert.match(stderr, /LOCK_LOST/)
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
})
