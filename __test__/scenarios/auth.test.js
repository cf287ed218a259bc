/**
 * Scenarios AUTH of docs/scenarios.md: what authors of migrations get wrong, and what they are told.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'

/** @import { MmkError } from 'mongo-migrate-kit' */

/** @param {string} body of an `up` that returns before its work is done */
const early = (body) => `export async function up({ db }) { ${body} }`

const reject = (/** @type {number} */ ms) =>
  `setTimeout(() => Promise.reject(new Error('nobody waited')), ${ms})`

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 */
async function kitOf(t, migrations) {
  const setting = await api(t, migrations)
  const kit = new MigratorKit({ ...setting.config, onEvent: setting.onEvent })
  t.after(() => kit.disconnect())
  return { ...setting, kit }
}

/** @param {Promise<unknown>} failing @returns {Promise<MmkError>} */
const failure = (failing) =>
  failing.then(
    () => assert.fail('it resolved'),
    (error) => error,
  )

test('AUTH-01: a rejection that nobody awaits ends the run that it falls into, which is no success', async (t) => {
  const slow = 'await new Promise((resolve) => setTimeout(resolve, 5000))'
  const { app, database } = await api(t, {
    '1-early.js': early(reject(500)),
    '2-slow.js': counting('slow', slow),
    '3-next.js': counting('next'),
  })

  const { code, stderr } = await app.mmk(['up']).ended

  assert.equal(code, 1, stderr)
  assert.match(stderr, /2-slow\.js ended the process before the command was done/)
  assert.match(stderr, /nobody waited/)
  assert.deepEqual(await runsOf(database, 'next'), { ups: 0, downs: 0 })
  assert.equal(await database.lock(), null)
})

test('AUTH-01: a rejection after the last body is no success either, and the lock is given back', async (t) => {
  const { app, database } = await api(t, { '1-early.js': early(reject(0)) })

  const { code, stderr } = await app.mmk(['up']).ended

  assert.equal(code, 1, stderr)
  assert.match(stderr, /1-early\.js/)
  assert.match(stderr, /nobody waited/)
  assert.equal(await database.lock(), null)
})

test('AUTH-01: a write that nobody awaits is waited for before its client is closed, with a warning', async (t) => {
  const slowly = { $where: 'sleep(400) || true' }
  const { kit, database, eventsOf } = await kitOf(t, {
    '1-early.js': early(`
      await db.collection('rows').insertMany([{}, {}])
      db.collection('rows').updateMany(${JSON.stringify(slowly)}, { $set: { done: true } })
      await new Promise((resolve) => setTimeout(resolve, 50))`),
  })

  await kit.up()

  assert.equal(await database.db.collection('rows').countDocuments({ done: true }), 2)
  const [warning] = eventsOf('warning').filter(({ code }) => code === 'OPERATIONS_LEFT')
  assert.match(warning?.message ?? '', /still running: update .*\.rows\. Is an await missing\?/)
})

test('AUTH-01: a body may return whatever it likes', async (t) => {
  const { kit } = await kitOf(t, {
    '1-cursor.js': early(`return db.collection('rows').find()`),
    '2-value.js': 'export const up = () => 7',
    '3-nothing.js': 'export const up = () => undefined',
  })
  assert.equal((await kit.up()).length, 3)
})

test('AUTH-02: every file that can not be used is named before the first one runs', async (t) => {
  const { app, database } = await api(t, {
    '1-good.js': counting('good'),
    '2-syntax.js': 'export const up = (',
    '3-throws.js': "throw new Error('at import')",
    '4-no-up.js': 'export const down = () => {}',
    '5-class.js': 'export default class Migration { up() {} }',
    '6-text.js': "export const up = 'text'",
    '7-good.js': counting('last'),
  })

  const { code, stderr } = await app.mmk(['up']).ended

  assert.equal(code, 2, stderr)
  for (const name of ['2-syntax', '3-throws', '4-no-up', '5-class', '6-text']) {
    assert.match(stderr, new RegExp(`${name}\\.js`))
  }
  assert.doesNotMatch(stderr, /\d-good/)
  assert.deepEqual(await database.db.listCollections().toArray(), [])
})

test('AUTH-03: a cursor that the server has dropped fails the migration, which is recorded as partly done', async (t) => {
  const { kit, database } = await kitOf(t, {
    '1-loop.js': early(`
      const rows = db.collection('rows')
      await rows.insertMany(Array.from({ length: 6 }, () => ({})))
      const cursor = rows.find({}, { batchSize: 2 })
      for await (const { _id } of cursor) {
        await rows.updateOne({ _id }, { $set: { seen: true } })
        if (cursor.id && !cursor.id.isZero())
          await db.command({ killCursors: 'rows', cursors: [cursor.id] })
      }`),
  })

  const error = await failure(kit.up())

  assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
  assert.equal(error.cause.codeName, 'CursorNotFound')
  assert.match(error.message, /1-loop\.js[\s\S]*cursor id \d+ not found/)
  assert.match(error.hint ?? '', /what it wrote before it failed is still there/)
  assert.equal((await database.entry('1-loop.js'))?.status, 'failed')
  assert.equal(await database.db.collection('rows').countDocuments({ seen: true }), 2)
})

/** What is in the way of an index, and what the server calls it. */
const indexes = {
  'the same keys under another name': {
    first: (/** @type {import('mongodb').Collection} */ rows) =>
      rows.createIndex({ a: 1 }, { name: 'old' }),
    index: "{ a: 1 }, { name: 'new' }",
    mend: "await db.collection('rows').dropIndex('old')",
    codeName: 'IndexOptionsConflict',
    says: /already exists with a different name: old/,
  },
  duplicates: {
    first: (/** @type {import('mongodb').Collection} */ rows) =>
      rows.insertMany([{ b: 1 }, { b: 1 }]),
    index: '{ b: 1 }, { unique: true }',
    mend: "await db.collection('rows').deleteOne({ b: 1 })",
    codeName: 'DuplicateKey',
    says: /E11000 .*index: b_1/,
  },
  'another lifetime': {
    first: (/** @type {import('mongodb').Collection} */ rows) =>
      rows.createIndex({ c: 1 }, { expireAfterSeconds: 10 }),
    index: '{ c: 1 }, { expireAfterSeconds: 20 }',
    mend: "await db.collection('rows').dropIndex('c_1')",
    codeName: 'IndexOptionsConflict',
    says: /c_1/,
  },
}

for (const [what, { first, index, mend, codeName, says }] of Object.entries(indexes)) {
  test(`AUTH-04: an index that ${what} forbids fails by the server's words, and a mended file goes on`, async (t) => {
    const create = `await db.collection('rows').createIndex(${index})`
    const { app, kit, database } = await kitOf(t, {
      '1-index.js': early(create),
      '2-next.js': counting('next'),
    })
    await first(database.db.collection('rows'))

    const error = await failure(kit.up())

    assert.equal(error.cause.codeName, codeName)
    assert.match(error.message, /1-index\.js/)
    assert.match(error.message, says)
    assert.equal((await database.entry('1-index.js'))?.status, 'failed')

    await app.write('migrations/1-index.js', early(`${mend}\n${create}`))
    assert.deepEqual(
      (await kit.up()).map(({ status }) => status),
      ['applied', 'applied'],
    )
  })
}
