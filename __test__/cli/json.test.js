/**
 * Output for programs: one document whatever happens, in the version that was asked for, and events
 * before it with `--json-lines`. Every command's document is held against the schema in
 * `__test__/snapshots`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { three, throwing } from '../helpers/given.js'
import { assertDocument, assertEvent } from '../helpers/output-schema.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const noise = `export function up() {
  console.log('noise'); process.stdout.write('more noise'); console.error('and more')
  const end = Date.now() + 100
  while (Date.now() < end);
  console.log('noise after a blocked event loop')
}`

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 */
async function app(t, migrations) {
  const database = await freshDatabase(t)
  return { database, ...(await project(t, migrations, database)) }
}

/** @param {string} stdout of `--json-lines` */
function readLines(stdout) {
  assert.ok(stdout.endsWith('\n'), 'the last line is whole')
  const lines = stdout.trimEnd().split('\n')
  const values = lines.map((line) => JSON.parse(line))
  return { events: values.slice(0, -1), document: values.at(-1) }
}

/** @param {any[]} rows */
const outline = (rows) => rows.map(({ file, status }) => `${file} ${status}`)

test('--json-lines prints every event as it happens, and the document on the last line', async (t) => {
  const { mmk } = await app(t, three)

  const { code, stdout } = await mmk(['up', '--json-lines']).ended

  assert.equal(code, 0)
  const { events, document } = readLines(stdout)
  for (const event of events) assertEvent(event)
  assertDocument(document, 'up')
  const types = events.map(({ type }) => type).filter((type) => type !== 'leaseRenewed')
  assert.deepEqual(types, [
    'lockAcquired',
    'lockArmed',
    'planned',
    ...Object.keys(three).flatMap(() => ['migrationStarted', 'migrationFinished']),
    'lockReleased',
  ])
  assert.deepEqual(
    outline(document.migrations),
    Object.keys(three).map((name) => `${name} applied`),
  )
  assert.equal(document.lock.taken, true)
  assert.equal(typeof document.lock.fencingToken, 'number')
})

test('--json-lines tells what was done before a failure, and the failure on the last line', async (t) => {
  const { mmk } = await app(t, { ...three, '2-two.js': throwing })

  const { code, stdout } = await mmk(['up', '--json-lines']).ended

  assert.equal(code, 1)
  const { events, document } = readLines(stdout)
  for (const event of events) assertEvent(event)
  assertDocument(document, 'up')
  assert.ok(events.some(({ type, name }) => type === 'migrationFailed' && name === '2-two.js'))
  assert.deepEqual(outline(document.migrations), ['1-one.js applied'])
  assert.equal(document.error.code, 'MIGRATION_EXECUTION_FAILED')
  assert.match(document.error.details.location, /2-two\.js:3:9$/)
  assert.equal(document.metrics.claimConflicts, 0)
  assert.ok(!('metrics' in document.error.details))
})

for (const form of ['--json', '--json=2', '--json-lines']) {
  test(`with ${form}, what bodies print goes to stderr, also from a blocked event loop`, async (t) => {
    const { mmk } = await app(t, { '1-noisy.js': noise })

    const { code, stdout, stderr } = await mmk(['up', form]).ended

    assert.equal(code, 0, stderr)
    assert.doesNotMatch(stdout, /noise/)
    assert.match(stderr, /noise\nmore noiseand more\nnoise after a blocked event loop\n/)
    if (form === '--json-lines') assertDocument(readLines(stdout).document, 'up')
    else JSON.parse(stdout)
  })

  test(`with ${form}, a process that a body ends still leaves its document`, async (t) => {
    const { mmk } = await app(t, { '1-exits.js': 'export function up() { process.exit(0) }' })

    const { code, stdout } = await mmk(['up', form]).ended

    assert.equal(code, 1)
    const document = form === '--json-lines' ? readLines(stdout).document : JSON.parse(stdout)
    assert.equal(document.error.code, 'MIGRATION_EXECUTION_FAILED')
    if (form !== '--json') assertDocument(document, 'up')
  })
}

test('a rehearsal that fails has no numbers of a run', async (t) => {
  const { mmk } = await app(t, three)

  const { code, stdout } = await mmk(['down', '9-none.js', '--dry-run', '--json=2']).ended

  assert.equal(code, 2)
  const document = JSON.parse(stdout)
  assertDocument(document, 'down')
  assert.equal(document.metrics, null)
})

for (const form of ['--json', '--json=2', '--json-lines']) {
  test(`with ${form}, a signal to a blocked event loop still leaves its document`, async (t) => {
    const blocked = counting('two', "process.stderr.write('blocked\\n'); while (true);")
    const { mmk } = await app(t, { '1-one.js': counting('one'), '2-two.js': blocked })
    const run = mmk(['up', form])
    await poll(() => run.stderr().includes('blocked'), { what: 'it blocks', deadlineMs: 60_000 })

    run.kill('SIGTERM')
    const { code, stdout } = await run.ended

    assert.equal(code, 143)
    const document = form === '--json-lines' ? readLines(stdout).document : JSON.parse(stdout)
    assert.equal(document.error.code, 'RUN_CANCELLED')
    if (form === '--json') assert.deepEqual(Object.keys(document), ['error'])
    else {
      assertDocument(document, 'up')
      assert.deepEqual(outline(document.migrations), ['1-one.js applied'])
      assert.equal(document.metrics.claimConflicts, 0)
    }
    assert.ok(!('metrics' in document.error.details))
  })
}

test('a signal to a body that settles leaves one document with what was done', async (t) => {
  const { mmk, database } = await app(t, {
    '1-one.js': counting('one'),
    '2-two.js': counting('two', `console.error('began'); ${waitAtGate}; signal.throwIfAborted()`),
  })
  const run = mmk(['up', '--json=2'])
  await poll(() => run.stderr().includes('began'), { what: 'it began', deadlineMs: 60_000 })

  run.kill('SIGINT')
  await database.db.collection('gate').insertOne({ open: true })
  const { code, stdout } = await run.ended

  assert.equal(code, 130)
  const document = JSON.parse(stdout)
  assertDocument(document, 'up')
  assert.equal(document.error.code, 'RUN_CANCELLED')
  assert.equal(document.migrations[0].file, '1-one.js')
})

test('what a name holds that moves a cursor or turns the writing around is escaped', async (t) => {
  const name = '1-\u202eodd\x7f\u009b31m.js'
  const { mmk } = await project(t, { [name]: counting('odd') }, await freshDatabase(t))
  for (const flag of ['--json', '--json=2', '--json-lines']) {
    const { stdout } = await mmk(['list', flag]).ended
    assert.doesNotMatch(stdout, /[\x7f-\x9f\u202e]/, flag)
    assert.match(stdout, /1-\\u202eodd\\u007f\\u009b31m\.js/, flag)
  }
})

test('an instant beyond the year 9999 is still one of the schema', async (t) => {
  const database = await freshDatabase(t)
  const { mmk } = await project(t, {}, database)
  const appliedAt = new Date(8.64e15)
  await database.db
    .collection('_mmk_migrations')
    .insertOne({ name: '1.js', status: 'applied', appliedAt, batch: 1 })
  const { stdout } = await mmk(['status', '--json=2']).ended
  const document = JSON.parse(stdout)
  assertDocument(document, 'status')
  assert.equal(document.migrations[0].appliedAt, '+275760-09-13T00:00:00.000Z')
})

test('no event tells a password', async (t) => {
  const { mmk } = await app(t, {
    '1-tells.js':
      "export function up() { throw new Error('no mongodb://ann:hunter2@db.example/') }",
  })

  const { stdout } = await mmk(['up', '--json-lines']).ended

  assert.ok(readLines(stdout).events.some(({ type }) => type === 'migrationFailed'))
  assert.doesNotMatch(stdout, /hunter2/)
})

test('--json before a file name takes no file for its version', async (t) => {
  const { mmk } = await app(t, three)

  const { code, stdout } = await mmk(['up', '--json', '2-two.js']).ended

  assert.equal(code, 0)
  assert.deepEqual(outline(JSON.parse(stdout)), ['2-two.js applied'])
})

test('a version that there is not is a usage error, as a document', async (t) => {
  const { mmk } = await app(t, three)

  const { code, stdout } = await mmk(['status', '--json=3']).ended

  assert.equal(code, 2)
  assert.equal(JSON.parse(stdout).error.code, 'INVALID_ARGUMENT')
})

test('init writes a JSON config with --json, and says so in JSON with --json=2', async (t) => {
  const { mmk } = await app(t, {})

  const file = await mmk(['init', '--json']).ended
  const said = await mmk(['init', '--json=2', '--force']).ended

  assert.match(file.stdout, /✔ Created {2}mmk\.config\.json/)
  assert.equal(said.code, 0, said.stderr)
  const document = JSON.parse(said.stdout)
  assertDocument(document, 'init')
  assert.match(document.path, /mmk\.config\.js$/)
})

test('the version and the help are documents too', async (t) => {
  const { mmk } = await app(t, {})

  for (const [args, command] of /** @type {[string[], string | null][]} */ ([
    [['--version'], null],
    [['down', '--help'], 'down'],
  ])) {
    const { code, stdout } = await mmk([...args, '--json=2']).ended
    assert.equal(code, 0)
    assertDocument(JSON.parse(stdout), command)
  }
})
