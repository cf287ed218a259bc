/**
 * Bodies that end their transaction themselves, and what is said to be left of them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'

/** @param {string} statements */
const transactional = (statements) => `
export const useTransaction = true
export async function up({ db, client, session }) {
  const write = (_id) => db.collection('seen').insertOne({ _id }, { session })
  await write(1)
  ${statements}
}`

/**
 * @param {import('node:test').TestContext} t
 * @param {string} statements
 */
async function failing(t, statements) {
  const { database, config } = await api(t, { 'a.js': transactional(statements) })
  await database.db.createCollection('seen')
  const error = await runMigrations(config).catch((reason) => reason)
  assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
  assert.equal((await database.entry('a.js'))?.status, 'failed')
  return { error, left: await database.db.collection('seen').countDocuments() }
}

const commit = 'await session.commitTransaction()'
const again = 'session.startTransaction(); await write(2)'
/** @type {Record<string, string>} */
const refused = {
  'commits and returns': commit,
  'commits, begins another one and returns': `${commit}; ${again}`,
  'commits, begins another one and throws': `${commit}; ${again}; throw new Error('boom')`,
  'catches the refusal': `${commit}.catch(() => {})`,
  'catches each refusal and goes on': `await session.commitTransaction().catch(() => {})
    try { session.startTransaction() } catch {}
    await write(2)`,
  'aborts, writes on and returns': 'await session.abortTransaction(); await write(2)',
  'aborts, begins another one and returns': `await session.abortTransaction(); ${again}`,
  'ends its session': 'await session.endSession()',
}

for (const [kind, statements] of Object.entries(refused)) {
  test(`a body that ${kind} has failed and is rolled back as a whole`, async (t) => {
    const { error, left } = await failing(t, statements)
    assert.match(error.message, /leave commit and abort to mongo-migrate-kit/)
    assert.match(error.message, /Rolled back: its transaction left nothing behind/)
    assert.equal(left, 0)
  })
}

test('a body that aborts and throws is told its own error', async (t) => {
  const { error, left } = await failing(
    t,
    `await session.abortTransaction(); throw new Error('boom')`,
  )
  assert.equal(error.cause.message, 'boom')
  assert.equal(left, 0)
})

const raw = `await client.db('admin').command({ commitTransaction: 1 }, { session })`
for (const [kind, end] of [
  ['returns', ''],
  ['throws', `throw new Error('boom')`],
]) {
  test(`a body that commits around its session and ${kind} is never called rolled back`, async (t) => {
    const { error, left } = await failing(t, `${raw}; ${end}`)
    assert.equal(left, 1)
    assert.match(error.message, /Not rolled back: it committed its transaction itself/)
    assert.doesNotMatch(`${error.message} ${error.hint}`, /Rolled back|was rolled back/)
    assert.equal(error.context.committed, true)
    assert.match(error.hint, /look at what it committed/)
  })
}

test('a body that wrote outside its transaction and throws is not said to have left nothing', async (t) => {
  const { error, left } = await failing(
    t,
    `await db.collection('seen').insertOne({ _id: 3 }); throw new Error('boom')`,
  )
  assert.equal(left, 1)
  assert.match(
    error.message,
    /Rolled back, but for its writes outside the transaction: insert on "seen"/,
  )
  assert.deepEqual(error.context.outside, [{ command: 'insert', collection: 'seen' }])
  assert.match(error.hint, /may still be there/)
})
