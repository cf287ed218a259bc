/**
 * A body that throws: what the caller gets, and what is true of the database afterwards.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const throwing = (/** @type {string} */ statement) => ({
  '1-before.js': counting('before'),
  '2-throws.js': `export async function up() { ${statement} }`,
  '3-after.js': counting('after'),
})

test('a thrown body leaves a failed entry, a free lock, and later files not run', async (t) => {
  const database = await freshDatabase(t)
  const { mmk } = await project(t, throwing(`throw new RangeError('seven is too many')`), database)

  const { code, stdout, stderr } = await mmk(['up']).ended

  assert.equal(code, 1, stdout + stderr)
  assert.match(stderr, /MIGRATION_EXECUTION_FAILED/)
  assert.match(stderr, /2-throws\.js/)
  assert.match(stderr, /seven is too many/)
  const entries = await database.entries()
  assert.deepEqual(
    entries.map(({ name, status }) => [name, status]),
    [
      ['1-before.js', 'applied'],
      ['2-throws.js', 'failed'],
    ],
  )
  assert.deepEqual(entries[1]?.error, { name: 'RangeError', message: 'seven is too many' })
  assert.deepEqual(await runsOf(database, 'after'), { ups: 0, downs: 0 })
  assert.equal(await database.lock(), null)
})

test('the next run applies a failed migration again, and what comes after it', async (t) => {
  const database = await freshDatabase(t)
  const source = throwing(`throw new Error('not yet')`)
  const { mmk, write } = await project(t, source, database)
  await mmk(['up']).ended
  await write('migrations/2-throws.js', counting('fixed'))

  const { code, stdout, stderr } = await mmk(['up']).ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout + stderr, /again.*2-throws\.js.*failed/i)
  const runs = await Promise.all(['before', 'fixed', 'after'].map((name) => runsOf(database, name)))
  assert.deepEqual(
    runs.map(({ ups }) => ups),
    [1, 1, 1],
  )
})

/** What a body may throw, or reject with, made anew in each migration. */
const thrown = {
  'an Error': 'new Error("plain")',
  'an Error with a cause': 'new Error("outer", { cause: new Error("inner") })',
  'an AggregateError': 'new AggregateError([new Error("a"), new Error("b")], "both")',
  'a string': '"just text"',
  undefined: 'undefined',
  null: 'null',
  'a number': '42',
  'a symbol': 'Symbol("s")',
  'an object without a prototype': 'Object.create(null)',
  'a frozen object': 'Object.freeze({ code: 7 })',
  'an object whose properties throw':
    'new Proxy({}, { get() { throw new Error("get") }, getPrototypeOf() { throw new Error("proto") } })',
}

for (const [kind, expression] of Object.entries(thrown)) {
  for (const how of ['throws', 'rejects with']) {
    test(`a body that ${how} ${kind} hands over that very value as cause`, async (t) => {
      const database = await freshDatabase(t)
      const key = `thrown ${database.name}`
      const up =
        how === 'throws'
          ? `export function up() { throw (globalThis[${JSON.stringify(key)}] = ${expression}) }`
          : `export const up = () => Promise.reject(globalThis[${JSON.stringify(key)}] = ${expression})`
      const { migrationsDir } = await project(t, { '1-throws.js': up })

      const error = await runMigrations({ ...database.config, migrationsDir, logger: null }).then(
        () => assert.fail('it resolved'),
        (reason) => reason,
      )

      assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED')
      assert.ok('cause' in error)
      assert.ok(
        Object.is(error.cause, Reflect.get(globalThis, key)),
        'identical to what was thrown',
      )
      assert.equal((await database.entry('1-throws.js'))?.status, 'failed')
      assert.equal(await database.lock(), null)
    })
  }
}
