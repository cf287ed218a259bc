/**
 * Namespaces in a collection that 1.x has used: its unique index on the bare name lets each name in once.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MigratorKit, NamespaceIndexError } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { oneX } from '../helpers/one-x.js'
import { endProfile, profiled, startProfile } from '../helpers/profile.js'

/** @import { MmkConfig, MmkError } from 'mongo-migrate-kit' */

const orders = { namespace: 'orders' }

/**
 * A database in which 1.3.0 has applied 2-two.js, and its project.
 * @param {import('node:test').TestContext} t
 */
async function after1x(t) {
  const setting = await api(t, { '2-two.js': counting('two') })
  const { code, stdout, stderr } = await oneX(setting.app, ['up']).ended
  assert.equal(code, 0, stdout + stderr)
  await setting.app.write('migrations/1-one.js', counting('one'))
  /** @param {Partial<MmkConfig>} [more] */
  const kitOf = (more) => {
    const kit = new MigratorKit({ ...setting.config, ...more })
    t.after(() => kit.disconnect())
    return kit
  }
  const changelog = setting.database.db.collection('_mmk_migrations')
  return { ...setting, kitOf, changelog }
}

/** @param {Promise<unknown>} refused @returns {Promise<MmkError>} */
const refusal = (refused) =>
  refused.then(
    () => assert.fail('it resolved'),
    (error) => error,
  )

test('a namespace that the index of 1.x keeps out is refused before its first body', async (t) => {
  const { app, kitOf, changelog, database } = await after1x(t)

  const error = await refusal(kitOf(orders).up())

  assert.ok(error instanceof NamespaceIndexError)
  assert.equal(error.code, 'NAMESPACE_INDEX')
  const command = 'db.getCollection("_mmk_migrations").dropIndex("name_1")'
  const { problems: _, metrics, ...facts } = error.context
  assert.ok(metrics)
  assert.deepEqual(facts, {
    ...{ collection: '_mmk_migrations', index: 'name_1', names: ['2-two.js'], command },
    ...{ done: [], notStarted: [] },
  })
  const { code, stderr } = await app.mmk(['up', '--namespace', 'orders']).ended
  assert.equal(code, 4, stderr)
  assert.match(stderr, /✖ NAMESPACE_INDEX: .*2-two\.js.*unique index "name_1"/)
  assert.ok(stderr.includes(command), stderr)
  assert.match(stderr, /once no mongo-migrate-kit 1\.x uses the collection/)
  assert.deepEqual(await runsOf(database, 'one'), { ups: 0, downs: 0 })
  assert.equal(await changelog.countDocuments(), 1)
})

test('what would create the entry is refused all the same: a dry run, and a mark', async (t) => {
  const { kitOf } = await after1x(t)
  const kit = kitOf(orders)

  await assert.rejects(kit.dryRun('up'), { code: 'NAMESPACE_INDEX' })
  await assert.rejects(kit.mark('2-two.js', 'applied'), { code: 'NAMESPACE_INDEX' })
  assert.equal((await kit.mark('1-one.js', 'applied')).status, 'applied')
})

test('names that nobody else has are no obstacle, and neither is anything once the index is dropped', async (t) => {
  const { kitOf, changelog, database } = await after1x(t)
  const kit = kitOf(orders)
  assert.equal((await kit.up('1-one.js')).length, 1)

  await changelog.dropIndex('name_1')

  assert.equal((await kit.up()).length, 1)
  assert.deepEqual(await runsOf(database, 'two'), { ups: 2, downs: 0 })
  assert.equal(await changelog.countDocuments({ name: '2-two.js' }), 2)
  assert.deepEqual(await kit.down('2-two.js').then((rows) => rows.length), 1)
  const [theirs] = (await kitOf().status()).filter(({ file }) => file === '2-two.js')
  assert.equal(theirs?.state, 'applied')
})

test('1.3.0 can not start beside names that are there twice, which is why the hint speaks of it', async (t) => {
  const { app, kitOf, changelog, database } = await after1x(t)
  await changelog.dropIndex('name_1')
  await kitOf(orders).up()

  const { code, stderr } = await oneX(app, ['up']).ended

  assert.equal(code, 1, stderr)
  assert.match(stderr, /index: name_1 dup key/)
  assert.equal(await changelog.countDocuments({ namespace: { $exists: false } }), 1)
  assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
})

test('an index of another kind is no obstacle', async (t) => {
  const { kitOf, changelog } = await after1x(t)
  await changelog.dropIndex('name_1')
  await changelog.createIndex({ name: 1 })
  await changelog.createIndex({ name: 1, namespace: 1 }, { unique: true })

  assert.equal((await kitOf(orders).up()).length, 2)
})

test('the default namespace, which does not look first, is told what has refused its entry', async (t) => {
  const { app, kitOf, database } = await after1x(t)
  await app.write('migrations/3-three.js', counting('three'))
  assert.equal((await kitOf(orders).up('3-three.js')).length, 1)

  const error = await refusal(kitOf().up())

  assert.equal(error.code, 'NAMESPACE_INDEX')
  assert.deepEqual(error.context.names, ['3-three.js'])
  assert.deepEqual(error.context.done, ['1-one.js'])
  assert.deepEqual(await runsOf(database, 'three'), { ups: 1, downs: 0 })
  assert.equal(await database.lock(), null)
})

test('a namespace with nothing pending asks for nothing but its entries', async (t) => {
  const { kitOf, database } = await after1x(t)
  const kit = kitOf(orders)
  await kit.mark('1-one.js', 'applied')
  await database.db.collection('_mmk_migrations').dropIndex('name_1')
  await kit.up()
  await startProfile(database)
  await kit.up()
  await endProfile(database)

  const sent = (await profiled(database)).filter(({ ns }) => ns.endsWith('._mmk_migrations'))
  assert.deepEqual(
    sent.map(({ op, command }) => `${op} ${Object.keys(command)[0]}`),
    ['query find'],
  )
})
