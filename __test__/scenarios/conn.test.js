/**
 * Connecting: whatever a connection string says, both drivers do it, or nothing has begun.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { startAuthServer } from '../helpers/auth-server.js'
import { counting } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'
import { reserved, startSecureServer } from '../helpers/secure-server.js'

const one = { '1.js': counting('1') }

/** @type {import('../helpers/secure-server.js').SecureServer} */
let server
before(async () => {
  server = await startSecureServer()
})
after(() => server.stop())

/**
 * A run with one migration pending, in a database of its own.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} uri
 * @param {object} [options]
 * @returns {Promise<{ applied: number, error: any, collections: string[] }>} what it came to, and
 *   what there is in the database afterwards
 */
async function attempt(t, uri, options = {}) {
  const db = server.root.db(`mmk_test_${randomUUID().slice(0, 8)}`)
  t.after(() => db.dropDatabase())
  const { migrationsDir } = await project(t, one)
  const config = { uri, dbName: db.databaseName, migrationsDir, logger: null, ...options }
  const outcome = await runMigrations(config).then(
    ({ applied }) => ({ applied: applied.length, error: null }),
    (error) => ({ applied: 0, error }),
  )
  const collections = (await db.listCollections().toArray()).map(({ name }) => name)
  return { ...outcome, collections }
}

/** @param {Awaited<ReturnType<typeof attempt>>} outcome @param {string} what */
function assertApplied({ applied, error }, what) {
  assert.equal(error, null, what)
  assert.equal(applied, 1, what)
}

/** @param {Awaited<ReturnType<typeof attempt>>} outcome @param {RegExp} message */
function assertRefused({ error, collections }, message) {
  assert.equal(error?.code, 'CONFIG_INVALID', String(error))
  assert.match(error.message, message)
  assert.deepEqual(collections, [])
}

const encoded = encodeURIComponent(reserved)
/** @param {string} more @param {string} [user] */
const withTls = (more, user = `sha256:${encoded}@`) =>
  `mongodb://${user}${server.host}/?authSource=admin&tls=true&${more}`
/** @param {string} [path] */
const caFile = (path = server.certificates.ca) => `tlsCAFile=${encodeURIComponent(path)}`

test('CONN-01: a flag that weakens TLS is honoured by both drivers or refused by its name', async (t) => {
  assertApplied(await attempt(t, withTls(caFile())), 'the whole check')
  for (const flag of ['tlsInsecure', 'tlsAllowInvalidCertificates']) {
    assertApplied(await attempt(t, withTls(`${flag}=true`)), flag)
  }
  for (const flag of ['tlsAllowInvalidHostnames=true', 'tlsCRLFile=/x', 'tlsCAFile=/gone.pem']) {
    const [name] = flag.split('=')
    assertRefused(await attempt(t, withTls(flag)), new RegExp(`"${name}"`))
  }
  const both = 'tlsInsecure=true&tlsAllowInvalidCertificates=true'
  assertRefused(await attempt(t, withTls(both)), /tlsinsecure.*tlsallowinvalidcertificates/i)
})

test('CONN-01: a server whose certificate nobody vouches for is refused before anything is written', async (t) => {
  const { error, collections } = await attempt(t, withTls('serverSelectionTimeoutMS=1500'))
  assert.equal(error?.code, 'CONNECTION_FAILED', String(error))
  assert.deepEqual(collections, [])
})

test('CONN-03: a client certificate signs in with a key in any form, or the file and its form are named', async (t) => {
  const { client, password } = server.certificates
  for (const [form, path] of Object.entries(client)) {
    const file = `tlsCertificateKeyFile=${encodeURIComponent(path)}`
    const secret = `&tlsCertificateKeyFilePassword=${encodeURIComponent(password)}`
    const uri =
      `mongodb://${server.host}/?authMechanism=MONGODB-X509&tls=true&${caFile()}&${file}` +
      (['encrypted', 'old'].includes(form) ? secret : '')
    const outcome = await attempt(t, uri)
    if (form === 'old') assertRefused(outcome, /"tlsCertificateKeyFile", .*old form.*old\.pem/)
    else assertApplied(outcome, form)
  }
})

test('CONN-03: certificates may be named in mongoClientOptions, for both drivers', async (t) => {
  const { ca, client } = server.certificates
  const mongoClientOptions = {
    tls: true,
    tlsCAFile: ca,
    tlsCertificateKeyFile: client.pkcs8,
    authMechanism: /** @type {const} */ ('MONGODB-X509'),
  }
  assertApplied(await attempt(t, `mongodb://${server.host}/`, { mongoClientOptions }), 'options')
  const buffers = { ca: Buffer.from('pem'), cert: Buffer.from('pem') }
  const refused = await attempt(t, `mongodb://${server.host}/`, { mongoClientOptions: buffers })
  assertRefused(refused, /"ca", .*tlsCAFile[\s\S]*"cert", .*tlsCertificateKeyFile/)
})

test('CONN-04: a mechanism that one driver lacks is refused before anything runs, with a way out', async (t) => {
  const aws = `mongodb://${server.host}/?authMechanism=MONGODB-AWS`
  assertRefused(await attempt(t, aws), /"authMechanism", .*only the Node driver.*lockUri/)
  for (const [user, mechanism] of [
    ['sha1', 'SCRAM-SHA-1'],
    ['sha256', 'SCRAM-SHA-256'],
  ]) {
    const uri = `mongodb://${user}:${encoded}@${server.host}/?authMechanism=${mechanism}`
    assertApplied(await attempt(t, uri), mechanism)
  }
})

test("CONN-04: what the app's version of the Node driver can't read is found before the lock is taken", async (t) => {
  const database = await freshDatabase(t)
  const env = { ...database.env, MMK_URI: `${database.uri}&maxAdaptiveRetries=2` }
  const { mmk } = await project(t, one, { env, driver: 'mongodb-6' })

  const { code, stdout, stderr } = await mmk(['up']).ended

  assert.equal(code, 2, stdout + stderr)
  assert.match(stderr, /CONFIG_INVALID: The MongoDB driver of this app .*maxadaptiveretries/)
  assert.deepEqual(await database.db.listCollections().toArray(), [])
})

test('CONN-05: a password with reserved characters works encoded or apart, and raw is one friendly error', async (t) => {
  assertApplied(await attempt(t, `mongodb://sha256:${encoded}@${server.host}/`), 'encoded')
  const auth = { username: 'sha256', password: reserved }
  const mongoClientOptions = { auth, authSource: 'admin' }
  assertApplied(await attempt(t, `mongodb://${server.host}/`, { mongoClientOptions }), 'apart')

  const raw = await attempt(t, `mongodb://sha256:${reserved}@${server.host}/`)
  assertRefused(raw, /reserved character.*encodeURIComponent/)
  const twice = await attempt(t, `mongodb://sha256:${encodeURIComponent(encoded)}@${server.host}/`)
  assert.equal(twice.error?.code, 'CONNECTION_FAILED', String(twice.error))
  for (const { error } of [raw, twice]) {
    const told = `${error.stack}${JSON.stringify(error.context)}`
    for (const part of ['ss:w', 'w/rd', 'rd%', encoded]) assert.ok(!told.includes(part), told)
  }
})

test('CONN-06: a URI without a database is no silent "test", with a slash before its options or without', async (t) => {
  for (const rest of ['', '/', '?authSource=admin', '/?authSource=admin']) {
    const uri = `mongodb://sha256:${encoded}@${server.host}${rest}`
    assertApplied(await attempt(t, uri), `"${rest}" with a dbName`)
    const error = await runMigrations({ uri, logger: null }).then(
      () => null,
      (reason) => reason,
    )
    assert.match(error?.message ?? '', /dbName is required/)
  }
  // Beside a dbName, the path says where the user is: admin.
  const uri = `mongodb://sha256:${encoded}@${server.host}/admin`
  const { collections, ...outcome } = await attempt(t, uri)
  assertApplied({ collections, ...outcome }, 'a dbName beside the path')
  assert.ok(collections.includes('runs'))
})

test('CONN-07: a user with readWrite on the database and nothing else can do everything', async (t) => {
  const auth = await startAuthServer(t)
  const database = await freshDatabase(t, auth.uri)
  const user = { createUser: 'app', pwd: 'app-secret', roles: ['readWrite'] }
  await database.db.command(user)
  const MMK_URI = auth.uri.replace('root:root@', 'app:app-secret@')
  const env = { MMK_URI: `${MMK_URI}&authSource=${database.name}`, MMK_DB: database.name }
  const { mmk } = await project(t, one, { env })
  await database.db
    .collection('changelog')
    .insertOne({ fileName: '0-old.js', appliedAt: new Date() })

  for (const args of [
    ['create', 'two'],
    ['status'],
    ['import', '--from', 'changelog'],
    ['up', '1.js'],
    ['down', '1.js'],
    ['unlock', '--yes'],
  ]) {
    const { code, stdout, stderr } = await mmk(args).ended
    assert.equal(code, 0, `mmk ${args.join(' ')}: ${stdout}${stderr}`)
  }
})
