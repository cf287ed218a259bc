/**
 * What a migration throws, as its caller gets it: the very value, what it says of itself, and where.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 * @returns {Promise<any>}
 */
async function failure(t, migrations) {
  const { config } = await api(t, migrations)
  return runMigrations(config).then(
    () => assert.fail('it did not fail'),
    (error) => error,
  )
}

/** Types above the throw, which a compiler that forgets about lines would take away. */
const typed = `
interface Shape {
  name: string
}
enum Kind { Small, Large }
type Both = Shape | Kind

export async function up(db: unknown): Promise<void> {
  const nothing = null as unknown as Both
  throw new RangeError(String(Kind.Large) + nothing)
}
`
const plain = `// two

// four




export async function up() {

  throw new RangeError('line ten')
}
`

for (const extension of ['js', 'mjs', 'ts', 'mts', 'cts']) {
  test(`an error of a .${extension} file is located at its line there`, async (t) => {
    const name = `1-throws.${extension}`
    const error = await failure(t, { [name]: extension.endsWith('ts') ? typed : plain })

    assert.match(error.context.location, new RegExp(`1-throws\\.${extension}:10:\\d+$`))
    assert.ok(error.message.includes(error.context.location))
  })
}

test('the errors within an AggregateError are kept, and told', async (t) => {
  const error = await failure(t, {
    '1-many.js': `export async function up() {
      globalThis.thrownHere = new AggregateError([new TypeError('first'), 'second'], 'both')
      throw globalThis.thrownHere
    }`,
  })

  assert.equal(error.cause, /** @type {any} */ (globalThis).thrownHere)
  assert.deepEqual(error.context.details.errors, [
    { name: 'TypeError', message: 'first' },
    { name: 'string', message: 'second' },
  ])
})

test('the write errors of a bulk write are kept, and told without their documents', async (t) => {
  const error = await failure(t, {
    '1-bulk.js': `export const up = ({ db }) => db.collection('users').insertMany(
      [{ _id: 1, secret: 'hunter2' }, { _id: 1, secret: 'hunter2' }, { _id: 2 }], { ordered: false })`,
  })

  assert.equal(error.cause.name, 'MongoBulkWriteError')
  assert.equal(error.cause.writeErrors.length, 1)
  const [told] = error.context.details.writeErrors
  assert.equal(told.index, 1)
  assert.equal(told.code, 11000)
  assert.match(told.message, /duplicate key/)
  assert.doesNotMatch(JSON.stringify(error.context), /hunter2/)
})

test('the labels that a server puts on an error are kept, and told', async (t) => {
  const error = await failure(t, {
    '1-labels.js': `import { MongoServerError } from 'mongodb'
      export function up() {
        throw new MongoServerError({ message: 'try again', code: 112, codeName: 'WriteConflict',
          errorLabels: ['TransientTransactionError'] })
      }`,
  })

  assert.ok(error.cause.hasErrorLabel('TransientTransactionError'))
  assert.deepEqual(error.context.details.errorLabels, ['TransientTransactionError'])
  assert.equal(error.context.details.codeName, 'WriteConflict')
})

for (const [what, thrown] of Object.entries({
  undefined: 'undefined',
  'a string': "'out of beans'",
  'an object without a prototype': "Object.assign(Object.create(null), { code: 'E_BEANS' })",
})) {
  test(`${what} that is thrown is the cause`, async (t) => {
    const error = await failure(t, {
      '1-odd.js': `export function up() { globalThis.thrownHere = ${thrown}; throw globalThis.thrownHere }`,
    })

    assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
    assert.ok('cause' in error)
    assert.equal(error.cause, /** @type {any} */ (globalThis).thrownHere)
    assert.match(error.docsUrl, /docs\/errors\.md#migration_execution_failed$/)
  })
}
