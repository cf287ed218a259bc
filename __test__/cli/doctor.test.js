import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAuthServer } from '../helpers/auth-server.js'
import { counting } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'
import { standalone } from '../helpers/servers.js'

/** @typedef {import('../../lib/doctor/finding.js').Finding} Finding */

/**
 * @param {import('../helpers/project.js').Project} app
 * @param {{ code: number, env?: NodeJS.ProcessEnv }} expected
 * @returns {Promise<Finding[]>}
 */
async function examined(app, { code: status, env = {} }) {
  const { code, stdout, stderr } = await app.mmk(['doctor', '--json'], { env }).ended
  assert.equal(code, status, stdout + stderr)
  const { sound, findings } = JSON.parse(stdout)
  assert.equal(sound, status === 0)
  return findings
}

/** @param {Finding[]} findings @param {Finding['level']} level */
const at = (findings, level) =>
  findings
    .filter((finding) => finding.level === level)
    .map(({ about, says }) => `${about}: ${says}`)

test('doctor finds nothing wrong where nothing is, and writes nothing', async (t) => {
  const database = await freshDatabase(t)
  const app = await project(t, { '1.js': counting('1') }, database)
  const findings = await examined(app, { code: 0 })

  assert.deepEqual(at(findings, 'problem'), [])
  assert.deepEqual(at(findings, 'note'), ['permissions: nobody has logged in'])
  assert.match(at(findings, 'ok')[0] ?? '', /^server: MongoDB \d.*replica set; both drivers/)
  assert.ok(at(findings, 'ok').includes('files: 1 migration, 1 pending'))
  assert.deepEqual(await database.db.listCollections().toArray(), [])
})

test('doctor finds the changelog of another tool until something is imported, and writes nothing', async (t) => {
  const database = await freshDatabase(t)
  const app = await project(t, { '1.js': counting('1'), '2.js': counting('2') }, database)
  const { db } = database
  await db.collection('migrations').insertOne({ note: 'of the app itself, and of no tool' })
  await db.collection('changelog').insertMany([
    { fileName: '1.js', appliedAt: new Date() },
    { fileName: 'gone.js', appliedAt: new Date() },
  ])
  await db.collection('my_history').insertOne({ migrationName: '2' })
  const found = (await examined(app, { code: 4 })).filter(({ about }) => about === 'import')
  assert.deepEqual(
    found.map(({ todo }) => todo).sort(),
    ['changelog', 'my_history'].map((name) => `\`mmk import --from ${name}\` takes it over`),
  )
  assert.deepEqual(
    found.find(({ says }) => says.includes('"changelog"')),
    {
      level: 'problem',
      about: 'import',
      says: 'a changelog of migrate-mongo (2 documents) is in "changelog", which says that 1 file pending here is applied: `mmk up` is refused',
      todo: '`mmk import --from changelog` takes it over',
    },
  )
  assert.equal((await app.mmk(['up']).ended).code, 4, 'so it is')
  const names = (await db.listCollections().toArray()).map(({ name }) => name)
  assert.deepEqual(
    names.filter((name) => name === '_mmk_migrations'),
    [],
  )

  for (const name of ['changelog', 'my_history']) {
    assert.equal((await app.mmk(['import', '--from', name, '--force']).ended).code, 0)
  }
  const after = await examined(app, { code: 4 })
  assert.deepEqual(
    after.filter(({ about }) => about === 'import'),
    [],
  )
})

test('a changelog that says nothing of the files here is a note', async (t) => {
  const database = await freshDatabase(t)
  const app = await project(t, { '1.js': counting('1') }, database)
  const other = { fileName: 'other.js', appliedAt: new Date() }
  await database.db.collection('changelog').insertOne(other)
  const notes = at(await examined(app, { code: 0 }), 'note')
  assert.ok(notes.some((text) => /^import: a changelog of migrate-mongo \(1 document\)/.test(text)))
})

test('doctor tells what a standalone can not do', async (t) => {
  const database = await freshDatabase(t, standalone)
  const app = await project(t, {}, database)
  const notes = at(await examined(app, { code: 0 }), 'note')
  assert.ok(notes.some((text) => text.startsWith('transactions: not available')))
})

test('doctor finds drift, missing files, unreadable entries and locks, runs that did not end, and says what to do', async (t) => {
  const database = await freshDatabase(t)
  const files = { '1.js': counting('1'), '2.js': counting('2') }
  const app = await project(t, files, database)
  assert.equal((await app.mmk(['up']).ended).code, 0)
  await app.write('migrations/1.js', counting('edited'))
  const changelog = database.db.collection('_mmk_migrations')
  await changelog.updateOne({ name: '2.js' }, { $set: { name: '2-gone.js' } })
  await changelog.insertOne({ name: 7, status: 'done' })
  await changelog.createIndex({ name: 1 }, { unique: true })
  await database.db.collection('_mmk_locks').updateOne(
    { _id: /** @type {any} */ ('mmk_fence') },
    {
      $set: {
        unsettled: [
          null,
          5,
          { runId: 5 },
          { runId: 'r', changelog: '_mmk_migrations', host: 'deploy-b', pid: 12 },
        ],
        token: 'abc',
      },
    },
  )
  await holdLock(database, { expiresAt: 'soon', lockedAt: 'now' })
  const env = { MMK_NAMESPACE: 'billing' }

  const { code, stdout, stderr } = await app.mmk(['doctor']).ended
  assert.equal(code, 4, stdout + stderr)
  assert.match(
    stdout,
    /✖ files: changed after being applied: 1\.js\n {2}→ `mmk mark <file> --applied`/,
  )
  assert.match(stdout, /✖ files: applied, but the file is gone: 2-gone\.js\n {2}→ restore it/)
  assert.match(stdout, /✖ changelog: 1 entry can't be read/)
  assert.match(stdout, /✖ lock: held by pid 16152 on deploy-a, and nothing in it says until when/)
  assert.match(stdout, /✖ changelog: 1 entry renamed by hand: `_id` says \/2\.js.* \/2-gone\.js/)
  assert.match(stdout, /✖ fence: .* it is the text "abc".*\n.*_mmk_locks.*NumberLong/)
  assert.match(stdout, /• runs: 3 entries of the fence's register can't be read/)
  assert.match(stdout, /• runs: 1 that did not end cleanly.*pid 12 on deploy-b/)

  const namespaced = await app.mmk(['doctor'], { env }).ended
  assert.match(namespaced.stdout, /• changelog: has the unique index name_1 of version 1/)
})

test('doctor names the permissions that are missing, and what happens without them', async (t) => {
  const server = await startAuthServer(t)
  const database = await freshDatabase(t, server.uri)
  const app = await project(t, {}, database)
  const resource = (/** @type {string} */ collection) => ({ db: database.name, collection })
  const uri = await server.userWith(database.name, [
    { resource: resource('_mmk_migrations'), actions: ['find', 'insert', 'update', 'listIndexes'] },
    { resource: resource('_mmk_locks'), actions: ['find', 'insert', 'update'] },
  ])
  const findings = await examined(app, { code: 4, env: { MMK_URI: uri } })
  assert.deepEqual(at(findings, 'problem'), [
    'permissions: remove on _mmk_locks is not granted: no run can begin',
  ])
  assert.deepEqual(at(findings, 'note'), [
    'permissions: changeStream on _mmk_locks is not granted: waiting for the lock polls',
  ])
})

test('doctor says which server it could not reach, and exits 1', async (t) => {
  const app = await project(t, {})
  const uri = 'mongodb://127.0.0.1:1/db?serverSelectionTimeoutMS=300'
  const { code, stdout, stderr } = await app.mmk(['doctor', '--uri', uri]).ended
  assert.equal(code, 1, stdout)
  assert.match(stderr, /CONNECTION_FAILED/)
  assert.match(stderr, /127\.0\.0\.1:1/)
})
