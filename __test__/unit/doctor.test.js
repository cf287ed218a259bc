import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Long } from 'mongodb'
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

for (const token of ['abc', Number.NaN, 1.5, null, Long.MAX_VALUE]) {
  test(`odd fences: a token ${token} that no run can raise is a problem`, () => {
    const locks = [{ _id: 'mmk_fence', token }]
    assert.match(
      said(facts({ locks }), 'fence')[0] ?? '',
      /^problem the fencing token is .*none begins/,
    )
  })
}

test('odd fences: tokens of all sizes are sound, and whatever stands in the register is told', () => {
  for (const token of [1, 5_000_000_000, Long.fromString('9007199254740993')]) {
    assert.deepEqual(said(facts({ locks: [{ _id: 'mmk_fence', token }] }), 'fence'), [])
  }
  const unsettled = [null, 5, { runId: 5 }, { pid: 12, host: 'a\u001b[2J' }, [], 'x']
  const [text] = said(facts({ locks: [{ _id: 'mmk_fence', token: 5, unsettled }] }), 'runs')
  assert.match(text ?? '', /^note 6 that did not end cleanly.*pid 12 on a\\x1b\[2J/)
})

test('an entry whose name is not that of its _id is a problem', () => {
  const entries = [
    { _id: '/1.js', name: '1.js', status: 'applied' },
    { _id: 'orders/1.js', name: '1.js', namespace: 'orders', status: 'applied' },
    { _id: 'an id of 1.x', name: '2.js', status: 'applied' },
    { _id: '/3.js', name: '4.js', status: 'applied' },
  ]
  const problems = said(facts({ entries }), 'changelog').filter((text) => /^problem/.test(text))
  assert.equal(problems.length, 1)
  assert.match(problems[0] ?? '', /^problem 1 entry .*"\/3\.js" says 4\.js$/)
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
