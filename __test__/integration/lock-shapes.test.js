/**
 * Lock documents that nobody of ours would write: half written, edited by hand, or of another age.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { holdLock } from '../helpers/database.js'

const past = new Date(Date.now() - 86_400_000)

/** @type {Record<string, import('mongodb').Document>} */
const odd = {
  'without an owner': { owner: undefined, leaseOwner: undefined, expiresAt: past, lockedAt: past },
  'with an expiry as text': { expiresAt: '2020-01-01' },
  'with a null expiry': { expiresAt: null },
  'with an array of expiries': { expiresAt: [past] },
  'with an expiry in the year 3000': { expiresAt: new Date('3000-01-01T00:00:00Z') },
  'with fields that nobody knows': { colour: 'green', expiresAt: new Date(Date.now() + 600_000) },
  'of a later protocol': { v: 3, expiresAt: past, lockedAt: past },
  'of a protocol that is no number': { v: 'two', expiresAt: past, lockedAt: past },
}

for (const [shape, fields] of Object.entries(odd)) {
  test(`REL-07: a lock ${shape} is held, said so, and can be released`, async (t) => {
    const { database, app } = await api(t, { '1.js': counting('1') })
    await holdLock(database, fields)

    const up = await app.mmk(['up']).ended
    assert.equal(up.code, 3, up.stdout + up.stderr)
    assert.match(up.stderr, /LOCK_ALREADY_HELD/)
    assert.match(up.stderr, /`mmk unlock` releases it now/)
    assert.deepEqual(await runsOf(database, '1'), { ups: 0, downs: 0 })

    const unlock = await app.mmk(['unlock', '--yes']).ended
    assert.equal(unlock.code, 0, unlock.stdout + unlock.stderr)
    assert.match(unlock.stderr, /⚠ Lock held by/)
    const again = await app.mmk(['up']).ended
    assert.equal(again.code, 0, again.stdout + again.stderr)
    assert.equal((await runsOf(database, '1')).ups, 1)
  })
}
