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
      electionId: null,
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

test('an expired lock is only said to be taken over if a run would take it', () => {
  const past = new Date(0)
  const lock = { pid: 7, host: 'a', owner: 'x', expired: true, expiresAt: past }
  const own = { _id: 'mmk_lock', v: 2, owner: 'x', leaseOwner: 'x', expiresAt: past }
  const beaten = { ...own, beats: 3, ttlMs: 60_000 }
  for (const [document, level, expected] of /** @type {const} */ ([
    [{ ...own, electionId: 'e1' }, 'note', /the next run takes it over$/],
    [{ ...beaten, electionId: 'e0' }, 'note', /once it has seen it stand still for 57 s$/],
    [{ ...own, leaseOwner: undefined }, 'note', /version 1: the next run takes it over$/],
    [own, 'problem', /no run takes it over$/],
    [{ ...beaten, ttlMs: -1 }, 'problem', /no run takes it over$/],
    [{ ...beaten, beats: 'many' }, 'problem', /no run takes it over$/],
  ])) {
    const [text] = said(facts({ locks: [document], electionId: 'e1' }, { lock }), 'lock')
    assert.match(text ?? '', expected)
    assert.ok(text?.startsWith(level), text)
  }
})

/** Whatever a shell or a script may have left in a field. */
/** @type {any[]} */
const ODD = [
  null,
  undefined,
  5,
  -1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  'abc\u001b[2J',
  true,
  [],
  [null],
  {},
  { toString: 5 },
  new Date(Number.NaN),
]

test('no shape of a field in the lock, the fence or the changelog ends the examination', () => {
  const lock = { pid: null, host: null, expired: true, expiresAt: null }
  for (const value of ODD) {
    const fields = ['owner', 'leaseOwner', 'beats', 'ttlMs', 'electionId', 'expiresAt']
    for (const field of fields) {
      const document = { _id: 'mmk_lock', owner: 'x', leaseOwner: 'x', [field]: value }
      findings(facts({ locks: [document], electionId: 'e' }, { lock }))
    }
    const runs = [{ runId: 'r', changelog: 'c', host: value, pid: value }, { runId: value }, value]
    for (const unsettled of [value, runs]) {
      findings(facts({ locks: [{ _id: 'mmk_fence', token: 5, unsettled }, { _id: value }] }))
    }
    for (const field of ['_id', 'name', 'namespace', 'status', 'version']) {
      const entry = { _id: '/1.js', name: '1.js', status: 'applied', [field]: value }
      const texts = findings(facts({ entries: [entry] })).map(({ says }) => says)
      assert.ok(!texts.join('').includes('\u001b'))
    }
  }
})

test('a register that can not be read is named, beside the runs that can', () => {
  const run = { runId: 'r', changelog: 'c', host: 'b', pid: 9 }
  const fence = { _id: 'mmk_fence', token: 5, unsettled: [null, 5, { runId: 5 }, run] }
  assert.deepEqual(said(facts({ locks: [fence] }), 'runs'), [
    'note 1 that did not end cleanly, or still go on: pid 9 on b',
    "note 3 entries of the fence's register can't be read: no run looks after them",
  ])
})

test('a fence whose token can not be raised is a problem, with the command that mends it', () => {
  for (const token of ['abc', Number.NaN, 2 ** 63, -1, 1.5, null, undefined, {}, [5]]) {
    const given = facts({ locks: [{ _id: 'mmk_fence', token }] })
    const found = findings(given).find(({ about }) => about === 'fence')
    assert.equal(found?.level, 'problem', String(token))
    assert.match(found.todo ?? '', /getCollection\("_mmk_locks"\)\.updateOne.*NumberLong/)
  }
  assert.deepEqual(said(facts({ locks: [{ _id: 'mmk_fence', token: 7 }] }), 'fence'), [])
})

test('an entry of ours that was renamed by hand is a problem, one of version 1 is none', () => {
  const entry = { _id: '/0001-a.js', name: '0000-a.js', status: 'applied' }
  const fine = { _id: 'shop/1.js', name: '1.js', namespace: 'shop', status: 'applied' }
  const old = { ...entry, _id: { hex: 1 } }
  assert.deepEqual(said(facts({ entries: [entry, fine, old] }), 'changelog'), [
    'ok 3 entries, all readable',
    'problem 1 entry renamed by hand: `_id` says /0001-a.js, the fields /0000-a.js',
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
