/**
 * A server that takes no update pipelines: the same runs, the same documents.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { startPlainServer } from '../helpers/plain-server.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'
import { replicaSet, standalone } from '../helpers/servers.js'

/** @import { TestContext } from 'node:test' */

const failing = (/** @type {string} */ name) => counting(name, "throw new Error('no such index')")

/**
 * @param {TestContext} t
 * @param {Record<string, string>} migrations
 * @param {string} [server] a URI
 */
async function plainApp(t, migrations, server = replicaSet) {
  const database = await freshDatabase(t, server)
  const { uri, refused } = await startPlainServer(t, server)
  const app = await project(t, migrations, { env: { ...database.env, MMK_URI: uri } })
  return { ...app, uri, database, refused }
}

/**
 * @param {import('../helpers/child.js').Child} child
 * @param {number} [status]
 */
async function ended(child, status = 0) {
  const { code, stdout, stderr } = await child.ended
  assert.equal(code, status, stdout + stderr)
  return stdout
}

/**
 * What a history leaves behind, without what differs from run to run.
 * @param {import('../helpers/database.js').Database} database
 */
async function left({ entries }) {
  return (await entries()).map((entry) => masked(entry))
}

const CHANGING = ['runId', 'startedAt', 'appliedAt', 'revertedAt', 'duration', 'checksum']

/** @param {any} entry @returns {any} */
function masked(entry) {
  const fields = Object.entries(entry).map(([field, value]) => {
    if (field === 'history') return [field, value.map(masked)]
    return [field, CHANGING.includes(field) ? kindOf(value) : value]
  })
  return Object.fromEntries(fields.sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** @param {unknown} value */
const kindOf = (value) => (value instanceof Date ? 'a date' : typeof value)

for (const [name, server] of Object.entries({ 'a replica set': replicaSet, standalone })) {
  test(`on ${name} a history is written as it is with pipelines`, async (t) => {
    const migrations = {
      '1-one.js': counting('one'),
      '2-two.js': counting('two'),
      '3-three.js': failing('three'),
    }
    const plain = await plainApp(t, migrations, server)
    const computed = await freshDatabase(t, server)
    const usual = await project(t, migrations, computed)
    for (const app of [plain, usual]) {
      await ended(app.mmk(['up']), 1)
      await app.write('migrations/3-three.js', counting('three'))
      await ended(app.mmk(['up']))
      await ended(app.mmk(['down']))
      await ended(app.mmk(['redo', '2-two.js']))
      await ended(app.mmk(['mark', '3-three.js', '--applied', '--reason', 'by $hand']))
      await ended(app.mmk(['down', '1-one.js', '-y']))
      await ended(app.mmk(['up']))
    }
    assert.deepEqual(await left(plain.database), await left(computed))
    assert.equal(await plain.database.lock(), null)
    assert.ok(plain.refused.length > 0)
    assert.deepEqual(await ended(plain.mmk(['list', '--pending'])), 'No migrations found\n')
  })
}

test('each run finds it out once', async (t) => {
  const { mmk, refused } = await plainApp(t, { '1-one.js': counting('one'), '2.js': counting('2') })
  await ended(mmk(['up']))
  assert.deepEqual(refused, ['findAndModify _mmk_locks'])
})

test('so does a run without the lock', async (t) => {
  const { mmk, refused, database } = await plainApp(t, { '1-one.js': counting('one') })
  await ended(mmk(['up', '--no-lock']))
  assert.equal((await database.entry('1-one.js'))?.status, 'applied')
  assert.deepEqual(refused, ['findAndModify _mmk_migrations'])
})

test('a body in a transaction commits together with its entry, and not without the fence', async (t) => {
  const app = await plainApp(t, { '1-one.js': counting('one') })
  const { database, migrationsDir, uri } = app
  const kit = new MigratorKit({
    ...database.config,
    uri,
    migrationsDir,
    logger: null,
    useTransaction: true,
  })
  t.after(() => kit.disconnect())
  const [result] = await kit.up()
  assert.deepEqual([result?.status, result?.transaction], ['applied', true])
  const fence = await database.db
    .collection('_mmk_locks')
    .findOne({ _id: /** @type {any} */ ('mmk_fence') })
  assert.equal(Number(fence?.touch), 1)
  assert.equal((await database.entry('1-one.js'))?.status, 'applied')
})

test('who waits gets the lock, and finds nothing left to do', async (t) => {
  const app = await plainApp(t, { '1-slow.js': counting('slow', waitAtGate) })
  const { database, mmk } = app
  const first = mmk(['up'])
  await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })
  const holder = JSON.parse(await ended(mmk(['unlock', '--json']), 3)).holder
  assert.equal(holder.expired, false)
  const second = mmk(['up', '--wait=60000'])
  await poll(async () => /waiting/i.test(second.stdout() + second.stderr()), {
    what: 'the other one waits',
  })
  await openGate(database)
  await ended(first)
  await ended(second)
  assert.deepEqual(await runsOf(database, 'slow'), { ups: 1, downs: 0 })
})

test('a killed holder is taken over when its lease is over, and not before', async (t) => {
  const ttl = ['--lock-ttl', '2']
  const app = await plainApp(t, { '1-slow.js': counting('slow', waitAtGate) })
  const { database, mmk } = app
  const first = mmk(['up', ...ttl])
  await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })
  first.kill('SIGKILL')
  await first.ended
  const left = await database.lock()
  assert.ok(left, 'a killed holder leaves its lock')
  await openGate(database)
  await ended(mmk(['up', '--wait', ...ttl]))
  const entry = await database.entry('1-slow.js')
  assert.equal(entry?.status, 'applied')
  assert.ok(entry?.startedAt >= left.expiresAt, 'the lease was respected')
  assert.deepEqual(
    entry?.history.map((/** @type {any} */ { status }) => status),
    ['running'],
  )
})

test('an unlocked holder stops', async (t) => {
  const app = await plainApp(t, {
    '1-slow.js': counting('slow', waitAtGate),
    '2.js': counting('2'),
  })
  const { database, mmk } = app
  const holder = mmk(['up', '--lock-ttl', '2'])
  await poll(async () => (await runsOf(database, 'slow')).ups === 1, { what: 'the body began' })
  await ended(mmk(['unlock', '--yes']))
  await ended(holder, 5)
  assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
  assert.notEqual((await database.entry('1-slow.js'))?.status, 'applied')
})
