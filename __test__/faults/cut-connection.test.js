/**
 * The network to the holder is gone, the holder itself is well. It must find out by its own clock:
 * nobody can tell it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { lostWarning } from '../helpers/lost.js'
import { ownServer } from '../helpers/own-server.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'
import { startProxy } from '../helpers/proxy.js'
import { replicaSet } from '../helpers/servers.js'

const ttlMs = 2000
/** Five seconds for the body, and a few for connections that nobody answers. */
const patienceMs = 12_000
const upWithTtl = ['up', '--lock-ttl', `${ttlMs / 1000}`]

/** Prints how the promise settled, and everything that escaped it. */
const app = `
import { runMigrations } from 'mongo-migrate-kit'
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => console.log(event, error))
}
await runMigrations({ lockTTLSeconds: ${ttlMs / 1000} }).then(
  () => console.log('resolved'),
  (error) => console.log('rejected', error.code),
)
`

/** @param {import('node:test').TestContext} t */
async function behindProxy(t) {
  const database = await freshDatabase(t)
  const proxy = await startProxy(t, replicaSet)
  const migrations = { '1-first.js': counting('1', waitAtGate), '2-second.js': counting('2') }
  const created = await project(t, migrations, database)
  await created.write('app.js', app)
  const began = () =>
    poll(async () => (await runsOf(database, '1')).ups > 0, { what: 'the body began' })
  return { database, proxy, ...created, began, far: { env: { MMK_URI: proxy.uri } } }
}

test('a run that is cut off for longer than its TTL ends with 5 while it is still cut off', async (t) => {
  const { database, proxy, mmk, began, far } = await behindProxy(t)
  const holder = mmk(upWithTtl, far)
  await began()

  proxy.cut()
  const cut = performance.now()
  const { code, stdout, stderr, endedAt } = await holder.ended
  proxy.heal()

  assert.equal(code, 5, stdout + stderr)
  const took = endedAt - cut
  assert.ok(took <= ttlMs + patienceMs, `it ended ${took} ms after the cut`)
  assert.match(stderr, lostWarning)
  assert.match(stderr, /LOCK_LOST/)
  assert.equal((await database.entry('1-first.js'))?.status, 'running')
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
})

test('a promise whose run is cut off for longer than its TTL rejects with LOCK_LOST, and nothing escapes it', async (t) => {
  const { database, proxy, node, began, far } = await behindProxy(t)
  const holder = node('app.js', far)
  await began()

  proxy.cut()
  await poll(() => holder.stdout().includes('rejected'), {
    what: 'it rejects while it is cut off',
    deadlineMs: 20_000,
  })
  proxy.heal()
  const { code, stdout, stderr } = await holder.ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /^rejected LOCK_LOST$/m)
  assert.doesNotMatch(stdout, /uncaughtException|unhandledRejection/)
  assert.equal((await database.entry('1-first.js'))?.status, 'running')
})

test('LEASE-07: a waiter takes over from a holder that was cut off at most one TTL after its last renewal', async (t) => {
  const { database, proxy, mmk, began, far } = await behindProxy(t)
  const holder = mmk(upWithTtl, far)
  await began()
  const waiter = mmk([...upWithTtl, '--wait'])
  await poll(() => waiter.stderr().includes('Waiting'), { what: 'the waiter waits' })

  proxy.cut()
  const again = await poll(async () => (await runsOf(database, '1')).ups === 2 && database.now(), {
    what: 'the waiter took over',
    deadlineMs: 20_000,
  })
  // Only its own renewals move `lockedAt`; the one that we took over from is kept beside it.
  const { prev } = (await database.lock()) ?? {}
  await openGate(database)

  assert.equal((await holder.ended).code, 5)
  const { code, stdout, stderr } = await waiter.ended
  assert.equal(code, 0, stdout + stderr)
  const late = again.getTime() - prev.expiresAt.getTime()
  assert.ok(late <= 10_000, `its first body began ${late} ms after the lease was over`)
  assert.equal((await runsOf(database, '2')).ups, 1)
})

test('LEASE-03: a server that is frozen for longer than the TTL makes the promise reject, and nothing escapes it', async (t) => {
  const server = await ownServer(t)
  const database = await freshDatabase(t, server.uri)
  const created = await project(t, { '1-first.js': counting('1', waitAtGate) }, database)
  await created.write('app.js', app)
  const holder = created.node('app.js')
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  const mongod = server.members[0]?.child

  mongod?.kill('SIGSTOP')
  try {
    await poll(() => holder.stdout().includes('rejected'), {
      what: 'it rejects while the server is frozen',
      deadlineMs: 20_000,
    })
  } finally {
    mongod?.kill('SIGCONT')
  }
  const { code, stdout, stderr } = await holder.ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /^rejected LOCK_LOST$/m)
  assert.doesNotMatch(stdout, /uncaughtException|unhandledRejection/)
})
