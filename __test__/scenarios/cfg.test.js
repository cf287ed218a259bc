/** Configuration and tenants, as public reports tell of them: docs/scenarios.md. */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { MongoClient } from 'mongodb'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const tenants = 30
const atOnce = 5
const failing = 7

test('CFG-02: thirty tenants have a lock and a changelog each, one that fails stops no other, and no connection is left', async (t) => {
  const body = `
    export async function up({ db }) {
      if (db.databaseName.endsWith('_${failing}')) throw new Error('tenant ${failing} is odd')
      await db.collection('runs').insertOne({})
    }`
  const database = await freshDatabase(t)
  const app = await project(t, { '1.js': body }, database)
  const client = new MongoClient(database.uri)
  // Those of runs: the server counts the test's and its own, too.
  const connections = async () => {
    const all = { $currentOp: { allUsers: true, idleConnections: true } }
    const ours = { $match: { appName: /^mmk/ } }
    return (await client.db('admin').aggregate([all, ours]).toArray()).length
  }
  const names = Array.from({ length: tenants }, (_, index) => `${database.name}_${index}`)
  t.after(async () => {
    for (const name of names) await client.db(name).dropDatabase()
    await client.close()
  })

  /** @type {Map<string, PromiseSettledResult<unknown>>} */
  const outcomes = new Map()
  const queue = names.values()
  let most = 0
  const worker = async () => {
    for (const dbName of queue) {
      const run = runMigrations({
        uri: database.uri,
        dbName,
        migrationsDir: app.migrationsDir,
        logger: null,
      })
      const [outcome] = await Promise.allSettled([run])
      if (outcome) outcomes.set(dbName, outcome)
      most = Math.max(most, await connections())
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))

  const rejected = [...outcomes].filter(([, { status }]) => status === 'rejected')
  assert.deepEqual(
    rejected.map(([name]) => name),
    [`${database.name}_${failing}`],
  )
  for (const name of names) {
    const entry = await client.db(name).collection('_mmk_migrations').findOne({ name: '1.js' })
    assert.equal(entry?.status, name.endsWith(`_${failing}`) ? 'failed' : 'applied', name)
  }
  assert.ok(most > 0 && most <= atOnce * 10, `${most} connections for ${atOnce} runs at once`)
  await poll(async () => (await connections()) === 0, {
    what: 'all connections are closed',
    deadlineMs: 30_000,
  })
})

test('CFG-02: an abort signal ends the runs that are under way, and no further tenant begins', async (t) => {
  const database = await freshDatabase(t)
  const waiting = counting(
    '1',
    "await new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason)))",
  )
  const app = await project(t, { '1.js': waiting }, database)
  const stop = new AbortController()
  const names = ['a', 'b'].map((tenant) => `${database.name}_${tenant}`)
  const client = new MongoClient(database.uri)
  t.after(async () => {
    for (const name of names) await client.db(name).dropDatabase()
    await client.close()
  })
  const runs = names.map((dbName) =>
    runMigrations({
      uri: database.uri,
      dbName,
      migrationsDir: app.migrationsDir,
      logger: null,
      signal: stop.signal,
    }),
  )
  const begun = (/** @type {string} */ name) =>
    runsOf({ ...database, db: client.db(name) }, '1').then(({ ups }) => ups === 1)
  for (const name of names) await poll(() => begun(name), { what: `${name} runs` })

  stop.abort(new Error('deploy cancelled'))
  const outcomes = await Promise.allSettled(runs)
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code),
    ['RUN_CANCELLED', 'RUN_CANCELLED'],
  )
  const after = {
    ...database.config,
    migrationsDir: app.migrationsDir,
    logger: null,
    signal: stop.signal,
  }
  await assert.rejects(runMigrations(after), { code: 'RUN_CANCELLED' })
})

test('CFG-03: a named config file is found from another folder, its relative directory goes by the working directory, and a missing file is an error', async (t) => {
  const database = await freshDatabase(t)
  const app = await project(t, { '1.js': counting('1') })
  const { uri, dbName } = database.config
  await app.write('conf/prod.mjs', `export default ${JSON.stringify({ uri, dbName })}`)
  const nested = join(app.folder, 'packages', 'api')
  await mkdir(nested, { recursive: true })

  const here = await app.mmk(['up', '--config', 'conf/prod.mjs']).ended
  assert.equal(here.code, 0, here.stdout + here.stderr)
  assert.match(here.stdout, /Loaded config from conf\/prod\.mjs/)
  assert.equal((await runsOf(database, '1')).ups, 1)

  const flags = ['config', '--json', '--config', '../../conf/prod.mjs']
  const there = await app.mmk(flags, { cwd: nested }).ended
  const { configFile, settings } = JSON.parse(there.stdout)
  assert.equal(configFile, join(app.folder, 'conf', 'prod.mjs'))
  const directory = settings.find((/** @type {any} */ { key }) => key === 'migrationsDir')
  assert.equal(directory.shown, JSON.stringify(join(nested, 'migrations')))

  const missing = await app.mmk(['status', '--config', 'conf/none.mjs']).ended
  assert.equal(missing.code, 2, missing.stdout)
  assert.match(missing.stderr, /does not exist: .*none\.mjs/)
})
