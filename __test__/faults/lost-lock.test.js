/**
 * A live holder whose lock was taken away: it must notice, and stop.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { lostWarning } from '../helpers/lost.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'
import { replicaSet, standalone } from '../helpers/servers.js'

const stuck = 'await new Promise((resolve) => setTimeout(resolve, 600_000))'

/**
 * A run in its first body, by the command line.
 *
 * @param {import('node:test').TestContext} t
 * @param {{ body?: string, ttl?: string, uri?: string }} [options] `ttl` in seconds
 */
async function holding(t, { body = waitAtGate, ttl = '2', uri = replicaSet } = {}) {
  const database = await freshDatabase(t, uri)
  const migrations = { '1-long.js': counting('1', body), '2-next.js': counting('2') }
  const { mmk } = await project(t, migrations, database)
  const holder = mmk(['up', '--lock-ttl', ttl])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  return { database, mmk, holder, upWithTtl: ['up', '--lock-ttl', ttl] }
}

/** @param {Pick<Awaited<ReturnType<typeof holding>>, 'database' | 'mmk'>} run @returns when the lock document was gone */
async function unlocked({ database, mmk }) {
  const unlock = mmk(['unlock', '--yes'])
  await poll(async () => (await database.lock()) === null, { what: 'it is unlocked', everyMs: 5 })
  const at = performance.now()
  const { code, stdout, stderr } = await unlock.ended
  assert.equal(code, 0, stdout + stderr)
  return at
}

test('a run whose lock was released by an operator stops, records nothing more and exits 5', async (t) => {
  const run = await holding(t)
  await unlocked(run)
  const { code, stdout, stderr } = await run.holder.ended

  assert.equal(code, 5, stdout + stderr)
  assert.match(stderr, lostWarning)
  assert.match(stderr, /LOCK_LOST/)
  assert.equal((await run.database.entry('1-long.js'))?.status, 'running')
  assert.deepEqual(await runsOf(run.database, '2'), { ups: 0, downs: 0 })
})

test('on a replica set a live holder stops within a second of an unlock, however long its TTL', async (t) => {
  const run = await holding(t, { ttl: '60' })
  const unlock = unlocked(run)
  await poll(() => lostWarning.test(run.holder.stderr()), { what: 'it says so', everyMs: 5 })
  const noticed = performance.now()

  const took = noticed - (await unlock)
  assert.ok(took <= 1000, `it noticed after ${took} ms`)
  assert.equal((await run.holder.ended).code, 5)
  t.diagnostic(`noticed after ${Math.round(took)} ms`)
})

test('on a standalone a live holder stops at its next renewal after an unlock', async (t) => {
  const run = await holding(t, { ttl: '4', uri: standalone })
  const at = await unlocked(run)
  const { code, stdout, stderr, endedAt } = await run.holder.ended

  assert.equal(code, 5, stdout + stderr)
  assert.match(stderr, lostWarning)
  assert.ok(endedAt - at <= 2000 + 2000, `it ended after ${endedAt - at} ms, renewing every 2 s`)
})

test('a run that lost its lock to another leaves that one in peace', async (t) => {
  const { database, mmk, holder, upWithTtl } = await holding(t)
  const first = await database.lock()
  await mmk(['unlock', '--yes']).ended

  mmk(upWithTtl)
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

for (const [kind, body] of Object.entries({
  'never settles': stuck,
  'blocks the event loop': 'while (true);',
})) {
  test(`a body that ${kind} does not keep a process alive whose lock is lost`, async (t) => {
    const run = await holding(t, { body })
    const at = await unlocked(run)
    const { code, stdout, stderr, endedAt } = await run.holder.ended

    assert.equal(code, 5, stdout + stderr)
    assert.match(stderr, /LOCK_LOST/)
    assert.ok(endedAt - at <= 9000, `it ended after ${endedAt - at} ms`)
    assert.deepEqual(await runsOf(run.database, '2'), { ups: 0, downs: 0 })
  })
}

/**
 * A run of the API whose lock is taken away in its body.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} body
 */
async function lostInBody(t, body) {
  const { database, config, onEvent, eventsOf } = await api(t, { '1-long.js': counting('1', body) })
  const kit = new MigratorKit(config)
  t.after(() => kit.disconnect())
  const failure = runMigrations({ ...config, onEvent }).then(
    () => assert.fail('it resolved'),
    (error) => error,
  )
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })
  assert.ok(await kit.forceUnlock(), 'there was a lock to release')
  return { error: await failure, eventsOf, database }
}

test('a body whose run lost the lock hears it from its signal, and finds its client closed', async (t) => {
  const body = `
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    const refused = async () => {
      for (let i = 0; i < 100; i += 1) {
        const error = await db.collection('runs').findOne({}).then(() => null, (error) => error)
        if (error) return error
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    globalThis.heard = { code: signal.reason.code, refused: (await refused())?.name }`
  const { error, eventsOf } = await lostInBody(t, body)

  assert.equal(error.code, 'LOCK_LOST')
  assert.deepEqual(
    eventsOf('leaseLost').map(({ cause }) => cause),
    ['superseded'],
  )
  const { heard } = /** @type {any} */ (globalThis)
  assert.equal(heard.code, 'LOCK_LOST')
  assert.match(heard.refused, /^Mongo/)
})

test('a promise whose body never settles after the lock was lost rejects in bounded time and says so', async (t) => {
  const began = performance.now()
  const { error, database } = await lostInBody(t, 'await new Promise(() => {})')

  assert.equal(error.code, 'LOCK_LOST')
  assert.equal(error.context.settled, false)
  assert.ok(performance.now() - began <= 15_000)
  assert.equal((await database.entry('1-long.js'))?.status, 'running')
})

test('a hook that takes no notice does not keep a run going whose lock is lost', async (t) => {
  const database = await freshDatabase(t)
  const { mmk, write } = await project(t, { '1-a.js': counting('1') }, database)
  const hook = `() => { console.error('called'); return new Promise((r) => setTimeout(r, 600_000)) }`
  await write('mmk.config.js', `export default { hooks: { beforeAll: ${hook} } }`)
  const holder = mmk(['up', '--lock-ttl', '2'])
  await poll(() => holder.stderr().includes('called'), { what: 'the hook was called' })

  await unlocked({ database, mmk })
  const { code, stdout, stderr } = await holder.ended

  assert.equal(code, 5, stdout + stderr)
  assert.match(stderr, /LOCK_LOST/)
  assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })
})
