/**
 * Two connections, made by two drivers: each way in, what they agree on, and what is checked of them
 * before the lock is taken.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { MongoClient } from 'mongodb'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { endProfile, profiled, startProfile } from '../helpers/profile.js'
import { reserved, startSecureServer } from '../helpers/secure-server.js'
import { replicaSet, standalone } from '../helpers/servers.js'

const one = { '1.js': counting('1') }

/** @type {import('../helpers/secure-server.js').SecureServer} */
let server
before(async () => {
  server = await startSecureServer()
})
after(() => server.stop())

/** @param {() => Promise<unknown>} work @returns {Promise<any>} what it was refused with */
const failure = (work) =>
  work().then(
    () => assert.fail('it was accepted'),
    (error) => error,
  )

/** @param {import('../helpers/api.js').Api} app that nothing of ours is in its database */
async function assertUntouched({ database }) {
  assert.deepEqual(await database.db.listCollections().toArray(), [])
}

test('both drivers reach a server over IPv4, IPv6 and a unix socket, alone and among several hosts', async (t) => {
  const root = 'mongodb://root:root-secret@'
  const hosts = [server.host, `localhost:${server.port}`, encodeURIComponent(server.socket)]
  if (server.ipv6) hosts.push(`[::1]:${server.port}`)
  for (const host of hosts) {
    const { config } = await api(t, one, `${root}${server.host}/`)
    const { applied } = await runMigrations({
      ...config,
      uri: `${root}${host}/?directConnection=true`,
    })
    assert.equal(applied.length, 1, host)
  }
  const { config } = await api(t, one)
  const [, set] = /^mongodb:\/\/(.*)\/\?/.exec(replicaSet) ?? []
  const uri = `mongodb://127.0.0.1:1,${set}/?replicaSet=rs0`
  assert.equal((await runMigrations({ ...config, uri })).applied.length, 1)
})

test("a compressor is used by both drivers, and a package that the app's driver lacks for it is named in time", async (t) => {
  const zlib = await api(t, one)
  const uri = `${replicaSet}&compressors=zlib&zlibCompressionLevel=3`
  assert.equal((await runMigrations({ ...zlib.config, uri })).applied.length, 1)

  const snappy = await api(t, one)
  const config = { ...snappy.config, uri: `${replicaSet}&compressors=snappy,zlib` }
  assert.equal((await new MigratorKit(config).status()).length, 1)
  const error = await failure(() => runMigrations(config))
  assert.equal(error.code, 'DEPENDENCY_MISSING', String(error))
  assert.match(error.message, /snappy/)
  await assertUntouched(snappy)
})

test('the version of the API that the app declares is declared by the core too', async (t) => {
  const { database, config } = await api(t, one)
  await startProfile(database)
  const mongoClientOptions = { serverApi: /** @type {const} */ ({ version: '1' }) }
  await runMigrations({ ...config, mongoClientOptions })
  await endProfile(database)

  // Of an update or a delete the server records the statement alone.
  const commands = await profiled(database, { 'command.$db': { $exists: true }, ns: /_mmk_/ })
  assert.ok(commands.length > 2)
  assert.deepEqual(
    commands.filter(({ command }) => command.apiVersion !== '1'),
    [],
  )
})

test('a server that never answers is given up on after serverSelectionTimeoutMS, wherever that is set', async (t) => {
  const hole = createServer(() => {}).listen(0, '127.0.0.1')
  t.after(() => hole.close())
  await new Promise((resolve) => hole.once('listening', resolve))
  const { port } = /** @type {import('node:net').AddressInfo} */ (hole.address())
  const { config } = await api(t, one)
  const uri = `mongodb://127.0.0.1:${port}/`
  for (const options of [
    { uri: `${uri}?serverSelectionTimeoutMS=600` },
    { uri, mongoClientOptions: { serverSelectionTimeoutMS: 600 } },
  ]) {
    const began = performance.now()
    const error = await failure(() => runMigrations({ ...config, ...options }))
    assert.equal(error.code, 'CONNECTION_FAILED')
    // Without the option it is 8 s.
    assert.ok(performance.now() - began < 7000, `${performance.now() - began} ms`)
  }
})

test("the bodies' connection is made before the lock is taken, and a failure of either leaves no trace", async (t) => {
  const { host } = server
  const good = `mongodb://root:root-secret@${host}/`
  const bad = `mongodb://root:wrong@${host}/`
  for (const uris of [
    { uri: bad, lockUri: good },
    { uri: good, lockUri: bad },
  ]) {
    const app = await api(t, one, good)
    const error = await failure(() => runMigrations({ ...app.config, ...uris }))
    assert.equal(error.code, 'CONNECTION_FAILED', String(error))
    assert.equal(error.context.uri, `mongodb://***:***@${host}/`)
    await assertUntouched(app)
  }
})

test('a lockUri of another user takes the lock, and the migrations run as the user of the uri', async (t) => {
  const app = await api(t, one, `mongodb://root:root-secret@${server.host}/`)
  const lockUri = `mongodb://sha256:${encodeURIComponent(reserved)}@${server.host}/`
  await startProfile(app.database)
  await runMigrations({ ...app.config, lockUri })
  await endProfile(app.database)

  /** @param {RegExp} ns */
  const users = async (ns) =>
    new Set((await profiled(app.database, { ns })).map(({ user }) => user))
  assert.deepEqual([...(await users(/_mmk_/))], ['sha256@admin'])
  assert.deepEqual([...(await users(/\.runs$/))], ['root@admin'])
})

test('a lock on another deployment than the migrations is refused, whoever made the client', async (t) => {
  const app = await api(t, one)
  const elsewhere = await failure(() => runMigrations({ ...app.config, lockUri: standalone }))
  const client = await new MongoClient(standalone).connect()
  t.after(() => client.close())
  const theirs = await failure(() => runMigrations({ ...app.config, client }))

  for (const error of [elsewhere, theirs]) {
    assert.equal(error.code, 'CONFIG_INVALID', String(error))
    assert.match(error.message, /another deployment/)
  }
  await assertUntouched(app)
  assert.equal((await runMigrations({ ...app.config, lockUri: replicaSet })).applied.length, 1)
  assert.equal((await runsOf(app.database, '1')).ups, 1)
})
