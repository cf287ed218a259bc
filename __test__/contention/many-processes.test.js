/**
 * Sixteen processes, CLI and API half and half, meet on an empty database. Nothing tells them of each
 * other but the lock.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const rounds = 20
const ofEach = 8

const app = `
import { runMigrations } from 'mongo-migrate-kit'
await runMigrations({ onLockHeld: 'wait' })
`

for (let round = 1; round <= rounds; round += 1) {
  const name = `ACQ-01, ACQ-03: sixteen processes that start at once apply a migration once (${round} of ${rounds})`
  test(name, { timeout: 120_000 }, async (t) => {
    const database = await freshDatabase(t)
    const { mmk, node, write } = await project(t, { '1-count.js': counting('1') }, database)
    await write('app.js', app)

    const children = Array.from({ length: ofEach }, () => [mmk(['up', '--wait']), node('app.js')])
    const ends = await Promise.all(children.flat().map(({ ended }) => ended))

    for (const { code, stdout, stderr } of ends) {
      assert.equal(code, 0, stdout + stderr)
      assert.doesNotMatch(stdout + stderr, /E11000/)
    }
    assert.equal((await runsOf(database, '1')).ups, 1)
    const entries = await database.entries()
    assert.deepEqual(
      entries.map((entry) => [entry.name, entry.status, entry.batch]),
      [['1-count.js', 'applied', 1]],
    )
    assert.equal(await database.lock(), null)
  })
}
