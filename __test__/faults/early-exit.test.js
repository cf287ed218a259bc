import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

/** Ways in which a body can end its own process. */
const ways = {
  'process.exit(0)': 'process.exit(0)',
  'an error in a timer': `setTimeout(() => { throw new Error('stray') }, 0); await new Promise((resolve) => setTimeout(resolve, 1000))`,
  'an unhandled rejection': `Promise.reject(new Error('stray')); await new Promise((resolve) => setTimeout(resolve, 1000))`,
}

for (const [way, statement] of Object.entries(ways)) {
  test(`a body that ends its process by ${way} is no success, and names the migration`, async (t) => {
    const database = await freshDatabase(t)
    const migrations = { '1-exits.js': counting('1', statement), '2-next.js': counting('2') }
    const { mmk } = await project(t, migrations, database)

    const { code, stdout, stderr } = await mmk(['up']).ended

    assert.notEqual(code, 0, stdout + stderr)
    assert.match(stderr, /1-exits\.js/)
    assert.notEqual((await database.entry('1-exits.js'))?.status, 'applied')
    assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
  })
}
