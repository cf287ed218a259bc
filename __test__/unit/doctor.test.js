import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findings } from '../../lib/doctor/findings.js'
import { missingPermissions } from '../../lib/doctor/permissions.js'

const config = {
  dbName: 'shop',
  migrationsDir: '/app/migrations',
  migrationsCollection: '_mmk_migrations',
  lockCollection: '_mmk_locks',
}

/** @param {object} server @param {object} [more] */
const facts = (server, more = {}) =>
  /** @type {any} */ ({
    server: {
      version: '6.0.27',
      topology: 'replica set',
      clockOffsetMs: 3,
      privileges: null,
      locks: [],
      entries: [],
      indexes: [],
      ...server,
    },
    config,
    transactions: true,
    rows: [],
    neighbours: [],
    directoryFound: true,
    lock: null,
    ...more,
  })

/** @param {Parameters<typeof findings>[0]} given @param {string} about */
const said = (given, about) =>
  findings(given)
    .filter((finding) => finding.about === about)
    .map(({ level, says }) => `${level} ${says}`)

test('a clock that is off is a note, and in which direction it is off', () => {
  assert.deepEqual(said(facts({ clockOffsetMs: -4000 }), 'clock'), ["ok as the server's"])
  const [text] = said(facts({ clockOffsetMs: 600_000 }), 'clock')
  assert.match(text ?? '', /^note the server is 600\.0 s ahead of this machine/)
  assert.match(said(facts({ clockOffsetMs: -9000 }), 'clock')[0] ?? '', /9\.0 s behind/)
})

test('a server older than those that were tried is a problem', () => {
  assert.match(said(facts({ version: '4.2.24' }), 'server')[1] ?? '', /^problem MongoDB 4\.2\.24/)
  assert.equal(said(facts({ version: '4.4.2' }), 'server').length, 1)
})

test('the lock of a 1.x runner is named as such, and an expired one as left behind', () => {
  const lock = { pid: 7, host: 'a', expired: false }
  const old = { _id: 'mmk_lock', owner: 'x', lockedAt: new Date() }
  assert.deepEqual(said(facts({ locks: [old] }, { lock }), 'lock'), [
    'note held by pid 7 on a, a runner of version 1',
  ])
  const ours = { ...old, leaseOwner: 'x', expiresAt: new Date() }
  assert.deepEqual(said(facts({ locks: [ours] }, { lock: { ...lock, expired: true } }), 'lock'), [
    'note left by pid 7 on a: the next run takes it over',
  ])
})

test('another lock collection is a note, because such a run takes no turns with the others', () => {
  const given = facts({}, { config: { ...config, lockCollection: 'mine' } })
  assert.match(said(given, 'lock')[0] ?? '', /^note lockCollection is "mine"/)
})

test('a directory that is not there is a problem, names are escaped, and a clean folder is counted', () => {
  const gone = facts({}, { directoryFound: false })
  assert.match(said(gone, 'files')[0] ?? '', /^problem the directory \/app\/migrations/)
  const row = { file: '1\u001b[2J.js', status: 'applied', state: 'failed', checksumOk: null }
  assert.deepEqual(said(facts({}, { rows: [row] }), 'files'), ['problem failed: 1\\x1b[2J.js'])
})

test('a privilege on any resource, on the whole database or on the collection is enough', () => {
  const all = ['find', 'insert', 'update', 'remove', 'changeStream']
  for (const resource of [
    { anyResource: true },
    { db: '', collection: '' },
    { db: 'shop', collection: '' },
  ]) {
    assert.deepEqual(missingPermissions([{ resource, actions: all }], config), [])
  }
  const missing = missingPermissions(
    [
      { resource: { db: 'shop', collection: '_mmk_locks' }, actions: all },
      { resource: { db: 'other', collection: '' }, actions: all },
    ],
    config,
  )
  assert.deepEqual(
    missing.map(({ action, collection }) => `${action} ${collection}`),
    ['find _mmk_migrations', 'insert _mmk_migrations', 'update _mmk_migrations'],
  )
})
