/**
 * Several repos on one database: each has a history of its own, and they take turns.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { api } from '../helpers/api.js'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

/**
 * @param {import('node:test').TestContext} t
 * @returns two repos with a file of the same name
 */
async function twoRepos(t) {
  const { database, app: orders } = await api(t, { '1-same.js': counting('orders', waitAtGate) })
  const worker = await project(t, { '1-same.js': counting('worker') }, database)
  const holder = orders.mmk(['up', '--namespace', 'orders-api'])
  await poll(async () => (await runsOf(database, 'orders')).ups === 1, { what: 'the body began' })
  return { database, orders, worker, holder }
}

test('runs of two namespaces take turns, and each has an entry for a file of the same name', async (t) => {
  const { database, worker, holder } = await twoRepos(t)
  const waiter = worker.mmk(['up', '--namespace', 'orders-worker', '--wait'])
  await poll(() => waiter.stderr().includes('Waiting'), { what: 'the other one waits' })
  assert.match(waiter.stderr(), /namespace "orders-api"/)
  assert.match(waiter.stderr(), /which is running 1-same\.js/)
  assert.deepEqual(await runsOf(database, 'worker'), { ups: 0, downs: 0 })

  await openGate(database)
  for (const run of [holder, waiter]) {
    const { code, stdout, stderr } = await run.ended
    assert.equal(code, 0, stdout + stderr)
  }

  assert.equal((await runsOf(database, 'worker')).ups, 1)
  const entries = await database.entries()
  assert.deepEqual(entries.map(({ name, namespace, status }) => [name, namespace, status]).sort(), [
    ['1-same.js', 'orders-api', 'applied'],
    ['1-same.js', 'orders-worker', 'applied'],
  ])
})

test('the default namespace takes turns with the named ones', async (t) => {
  const { database, worker, holder } = await twoRepos(t)

  const { code, stderr } = await worker.mmk(['up']).ended

  assert.equal(code, 3, stderr)
  assert.match(stderr, /LOCK_ALREADY_HELD: The migration lock is held by namespace "orders-api"$/m)
  assert.deepEqual(await runsOf(database, 'worker'), { ups: 0, downs: 0 })
  await openGate(database)
  assert.equal((await holder.ended).code, 0)
})

test('unlock of a live holder of another namespace warns of both, and that holder stops', async (t) => {
  const { worker, holder } = await twoRepos(t)

  const unlock = worker.mmk(['unlock', '--yes', '--namespace', 'orders-worker'])
  const { code, stderr } = await unlock.ended

  assert.equal(code, 0, stderr)
  assert.match(stderr, /⚠ Lock held by namespace "orders-api": pid \d+ on /)
  assert.match(
    stderr,
    /⚠ This lock belongs to "orders-api", not this repo \("orders-worker"\) — releasing it may let two migrations run at once/,
  )
  assert.match(stderr, /⚠ Last renewed .* ago, within its TTL/)
  assert.equal((await holder.ended).code, 5)
})

test("a holder's own TTL counts, not that of the one who waits", async (t) => {
  const { database, worker, holder } = await twoRepos(t)
  holder.kill('SIGKILL')
  await holder.ended

  const impatient = worker.mmk(['up', '--lock-ttl', '1', '--wait=4000'])
  const { code, stderr } = await impatient.ended

  assert.equal(code, 3, stderr)
  assert.match(stderr, /LOCK_ALREADY_HELD/)
  assert.deepEqual(await runsOf(database, 'worker'), { ups: 0, downs: 0 })
})

test('a short TTL of a holder counts for one with a long TTL, too', async (t) => {
  const { database, app } = await api(t, { '1-slow.js': counting('slow', waitAtGate) })
  const holder = app.mmk(['up', '--lock-ttl', '1'])
  await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })
  holder.kill('SIGKILL')
  await holder.ended

  const next = app.mmk(['up', '--lock-ttl', '60', '--wait=15000'])
  await poll(async () => (await runsOf(database, 'slow')).ups === 2, { what: 'it takes over' })
  await openGate(database)

  assert.equal((await next.ended).code, 0)
})

test('a lock collection of its own is warned about, for it takes no turns with the rest', async (t) => {
  const { config, onEvent, eventsOf } = await api(t, { '1.js': counting('1') })
  const { runMigrations } = await import('mongo-migrate-kit')

  await runMigrations({ ...config, onEvent, lockCollection: 'my_locks' })

  const warnings = eventsOf('warning').map(({ code }) => code)
  assert.ok(warnings.includes('LOCK_COLLECTION'), warnings.join())
})
