/**
 * Our own old entries: whatever field a runner of 1.x did not write yet, an applied migration stays
 * applied.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const complete = {
  name: '1-old.js',
  batch: 1,
  status: 'applied',
  appliedAt: new Date('2024-01-01T12:00:00Z'),
  duration: 12,
  checksum: '',
  environment: 'production',
  executedBy: 'ann',
  service: 'orders',
  description: 'the first one',
}

/** Everything but the name and the status, without which there is nothing to say. */
const optional = Object.keys(complete).filter((field) => field !== 'name' && field !== 'status')

test('IMP-04: an old entry without one of its fields, or all of them, counts as applied and stays as it is', async (t) => {
  const database = await freshDatabase(t)
  const changelog = database.db.collection('_mmk_migrations')
  const { mmk } = await project(t, { '1-old.js': counting('old') }, database)
  for (const removed of [...optional.map((field) => [field]), optional]) {
    /** @type {Record<string, unknown>} */
    const entry = { ...complete }
    for (const field of removed) delete entry[field]
    await changelog.deleteMany({})
    await changelog.insertOne({ ...entry })
    const before = await database.entries()

    const status = await mmk(['status', '--json']).ended
    const up = await mmk(['up']).ended

    const without = `without ${removed.join(', ')}`
    assert.equal(status.code, 0, `${without}: ${status.stderr}`)
    assert.equal(JSON.parse(status.stdout)[0].state, 'applied', without)
    assert.equal(up.code, 0, `${without}: ${up.stderr}`)
    assert.match(up.stdout, /Nothing to migrate/, without)
    assert.deepEqual(await database.entries(), before, without)
  }
  assert.deepEqual(await runsOf(database, 'old'), { ups: 0, downs: 0 })
})
