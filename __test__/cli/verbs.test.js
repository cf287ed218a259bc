/**
 * The verbs end to end: what a person types, sees, and finds in the database afterwards.
 */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

/** @typedef {{ file: string, status: string, state: string, batch: number | null }} Row */

const three = {
  '1-one.js': counting('one'),
  '2-two.js': counting('two'),
  '3-three.js': counting('three'),
}

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [migrations]
 */
async function app(t, migrations = three) {
  const database = await freshDatabase(t)
  const created = await project(t, migrations, database)
  /** @param {string[]} args one command that must succeed */
  const ok = async (...args) => {
    const end = await created.mmk(args).ended
    assert.equal(end.code, 0, end.stdout + end.stderr)
    return end
  }
  /** @param {string[]} args @returns {Promise<Row[]>} */
  const json = async (...args) => JSON.parse((await ok(...args, '--json')).stdout)
  /** @param {string} name */
  const runs = (name) => runsOf(database, name)
  return { ...created, database, ok, json, runs }
}

/** @param {Row[]} rows */
const outline = (rows) => rows.map(({ file, status }) => `${file} ${status}`)

test('up says what it applied and how long each took, and a second up that there is nothing to do', async (t) => {
  const { ok } = await app(t)

  const first = await ok('up')
  const second = await ok('up')

  for (const name of Object.keys(three)) {
    assert.match(first.stdout, new RegExp(`✔ Applied {2}${name} {3}\\[\\d+ms\\]`))
  }
  assert.match(second.stdout, /Nothing to migrate/)
})

test('up with a file applies that one only', async (t) => {
  const { json, runs } = await app(t)

  assert.deepEqual(outline(await json('up', '2-two.js')), ['2-two.js applied'])

  assert.deepEqual((await runs('one')).ups, 0)
  assert.deepEqual((await runs('two')).ups, 1)
})

test('up --step gives each migration a batch of its own, and down takes back the last', async (t) => {
  const { json } = await app(t)

  const applied = await json('up', '--step')
  const reverted = await json('down')

  assert.deepEqual(
    applied.map(({ batch }) => batch),
    [1, 2, 3],
  )
  assert.deepEqual(outline(reverted), ['3-three.js reverted'])
})

test('down takes back the last batch, newest first, and what was reverted is pending again', async (t) => {
  const { json, ok, runs } = await app(t)
  await ok('up', '1-one.js')
  await ok('up')

  assert.deepEqual(outline(await json('down')), ['3-three.js reverted', '2-two.js reverted'])

  const rows = await json('status')
  assert.deepEqual(
    rows.map(({ file, status, state }) => [file, status, state]),
    [
      ['1-one.js', 'applied', 'applied'],
      ['2-two.js', 'pending', 'reverted'],
      ['3-three.js', 'pending', 'reverted'],
    ],
  )
  assert.deepEqual(await runs('one'), { ups: 1, downs: 0 })
  await ok('up')
  assert.deepEqual(await runs('two'), { ups: 2, downs: 1 })
})

test('down --steps reverts that many across batches, down with a file reverts that one', async (t) => {
  const { json, ok } = await app(t)
  await ok('up', '--step')

  assert.deepEqual(outline(await json('down', '--steps', '2')), [
    '3-three.js reverted',
    '2-two.js reverted',
  ])
  assert.deepEqual(outline(await json('down', '1-one.js')), ['1-one.js reverted'])
  assert.match((await ok('down')).stdout, /Nothing to rollback/)
})

test('status shows a table with batch, time, duration and checksum, and an edited file as MISMATCH', async (t) => {
  const { ok, write } = await app(t)
  await ok('up', '1-one.js')
  await write('migrations/1-one.js', `${counting('one')}// edited\n`)

  const { stdout } = await ok('status')

  const [one, two] = stdout.split('\n').filter((line) => /\.js/.test(line))
  assert.match(one ?? '', /1-one\.js.*applied.*1.*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.*\d+ms.*MISMATCH/)
  assert.match(two ?? '', /2-two\.js.*pending/)
})

test('status --check exits 1 while something is pending and 0 when nothing is', async (t) => {
  const { mmk, ok } = await app(t)

  const before = await mmk(['status', '--check']).ended
  await ok('up')

  assert.equal(before.code, 1)
  assert.match(before.stderr, /✖ 3 pending migrations?/)
  await ok('status', '--check')
})

test('list filters by pending and applied', async (t) => {
  const { json, ok } = await app(t)
  await ok('up', '1-one.js')

  assert.deepEqual(outline(await json('list', '--applied')), ['1-one.js applied'])
  assert.deepEqual(outline(await json('list', '--pending')), [
    '2-two.js pending',
    '3-three.js pending',
  ])
})

test('under --json stdout is one document even when bodies print', async (t) => {
  const { json } = await app(t, {
    '1-noisy.js': `export function up() { console.log('noise'); process.stdout.write('more noise') }`,
  })

  assert.deepEqual(outline(await json('up')), ['1-noisy.js applied'])
})

test('init writes a config, create a migration, and up applies what was created', async (t) => {
  const { ok, database, folder, migrationsDir } = await app(t, {})

  await ok('init', '--uri', database.uri, '--db', database.name)
  const { stdout } = await ok('create', 'Add users')
  const up = await ok('up')

  const [created] = await readdir(migrationsDir)
  assert.match(created ?? '', /^\d{14}-add-users\.js$/)
  assert.ok(stdout.includes(`✔ Created  ${created}`) || stdout.includes(created ?? ''), stdout)
  assert.ok((await readdir(folder)).some((name) => name.startsWith('mmk.config.')))
  assert.match(up.stdout, /Loaded config from mmk\.config\.\w+/)
  assert.doesNotMatch(up.stderr, /Warning/)
})

test('--help and --version answer without a configuration or a server', async (t) => {
  const { mmk } = await app(t)
  const env = { MMK_URI: '', MMK_DB: '' }

  const help = await mmk(['--help'], { env }).ended
  const version = await mmk(['--version'], { env }).ended

  assert.equal(help.code, 0)
  for (const verb of ['init', 'create', 'up', 'down', 'status', 'list', 'unlock']) {
    assert.match(help.stdout, new RegExp(`^\\s+${verb}\\b`, 'm'))
  }
  assert.equal(version.code, 0)
  assert.match(version.stdout, /^2\./)
})
