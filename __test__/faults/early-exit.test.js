import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const aMoment = 'await new Promise((resolve) => setTimeout(resolve, 1000))'

/** Ways in which a body can end its own process. */
const ways = {
  'process.exit(0)': 'process.exit(0)',
  'an error in a timer': `setTimeout(() => { throw new Error('stray') }, 0); ${aMoment}`,
  'an unhandled rejection': `Promise.reject(new Error('stray')); ${aMoment}`,
}

for (const [way, statement] of Object.entries(ways)) {
  test(`a body that ends its process by ${way} is no success, names the migration and leaves the lock free`, async (t) => {
    const database = await freshDatabase(t)
    const migrations = { '1-exits.js': counting('1', statement), '2-next.js': counting('2') }
    const { mmk } = await project(t, migrations, database)

    const { code, stdout, stderr } = await mmk(['up']).ended

    assert.notEqual(code, 0, stdout + stderr)
    assert.match(stderr, /1-exits\.js/)
    assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
    assert.equal(await database.lock(), null)
    const status = await mmk(['status', '--json']).ended
    assert.equal(JSON.parse(status.stdout)[0].state, 'interrupted')
  })
}
