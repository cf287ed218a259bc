/**
 * What runs, in which order, and what a person says instead: `--to`, `redo`, `mark`, `dry-run`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'

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
  /** @param {string[]} args */
  const mmk = (...args) => created.mmk(args).ended
  /** @param {string[]} args one command that must succeed, and its document */
  const json = async (...args) => {
    const end = await mmk(...args, '--json')
    assert.equal(end.code, 0, end.stdout + end.stderr)
    return JSON.parse(end.stdout)
  }
  return { ...created, database, mmk, json }
}

/** @param {{ file: string, status: string }[]} rows */
const outline = (rows) => rows.map(({ file, status }) => `${file} ${status}`)

test('up --to applies through a file, down --to takes back what came after one', async (t) => {
  const { json } = await app(t)

  assert.deepEqual(outline(await json('up', '--to', '2-two.js')), [
    '1-one.js applied',
    '2-two.js applied',
  ])
  assert.deepEqual(outline(await json('up')), ['3-three.js applied'])
  assert.deepEqual(outline(await json('down', '--to', '1-one.js')), [
    '3-three.js reverted',
    '2-two.js reverted',
  ])
})

test('redo says both halves, and that there is nothing to redo', async (t) => {
  const { mmk, json, write, database } = await app(t)
  assert.match((await mmk('redo')).stdout, /Nothing to redo/)
  await mmk('up')
  await write('migrations/2-two.js', counting('edited'))

  const { code, stdout } = await mmk('redo', '2-two.js')

  assert.equal(code, 0)
  assert.match(stdout, /↩ Reverted 2-two\.js {3}\[\d+ms\]\n✔ Applied {2}2-two\.js {3}\[\d+ms\]/)
  assert.deepEqual(await runsOf(database, 'edited'), { ups: 1, downs: 1 })
  assert.deepEqual(outline(await json('redo')), ['2-two.js reverted', '2-two.js applied'])
})

test('mark says what it has recorded and why, with control characters made visible', async (t) => {
  const { mmk, json } = await app(t)

  const { code, stdout } = await mmk(
    'mark',
    '1-one.js',
    '--applied',
    '--reason',
    'by\u001b[31mhand',
  )

  assert.equal(code, 0)
  assert.match(stdout, /✔ Marked {3}1-one\.js as applied {3}\(by\\x1b\[31mhand\)/)
  const again = await json('mark', '1-one.js', '--applied')
  assert.deepEqual([again.status, again.reason], ['skipped', 'Already applied'])
  const pending = await json('mark', '1-one.js', '--pending', '--reason', 'undone')
  assert.deepEqual([pending.file, pending.status], ['1-one.js', 'reverted'])
})

test('mark has to be told one state, and the name of a migration', async (t) => {
  const { mmk, database } = await app(t)
  for (const args of [
    ['mark', '1-one.js'],
    ['mark', '1-one.js', '--applied', '--pending'],
    ['mark', '--applied'],
    ['mark', '9-nine.js', '--applied'],
    ['mark', '../1-one.js', '--applied'],
  ]) {
    const { code, stderr } = await mmk(...args)
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, /^✖ [A-Z_]+: /m)
  }
  assert.deepEqual(await database.entries(), [])
})

test('mark and redo stop with 3 while somebody holds the lock', async (t) => {
  const { mmk, database } = await app(t)
  await mmk('up', '1-one.js')
  await holdLock(database)

  for (const args of [['redo'], ['mark', '2-two.js', '--applied']]) {
    assert.equal((await mmk(...args)).code, 3)
  }
})

test('dry-run counts and shows what would run, in its order, and runs nothing', async (t) => {
  const { mmk, json, database } = await app(t)

  const up = await mmk('dry-run', 'up', '--to', '2-two.js')
  assert.equal(up.code, 0)
  assert.match(up.stdout, /◎ Dry-run {2}Would apply: 2\n.*1-one\.js.*2-two\.js/s)
  assert.deepEqual(await database.entries(), [])

  await mmk('up')
  const rows = await json('dry-run', 'down', '--steps', '2')
  assert.deepEqual(outline(rows), ['3-three.js applied', '2-two.js applied'])
  const none = await mmk('dry-run', 'up')
  assert.match(none.stdout, /Would apply: 0\n$/)
  assert.deepEqual(await json('dry-run', 'up'), [])
  assert.deepEqual(await runsOf(database, 'three'), { ups: 1, downs: 0 })
})

test('--dry-run on up and down asks nothing and runs nothing', async (t) => {
  const { mmk, json, database } = await app(t)
  assert.equal((await json('up', '--dry-run', '1-one.js')).length, 1)
  await mmk('up')

  const forced = await mmk('up', '1-one.js', '--force', '--dry-run')
  const down = await mmk('down', '--force', '--dry-run')

  assert.match(forced.stdout, /Would apply: 1/)
  assert.match(down.stdout, /Would revert: 3/)
  assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
})

test('a dry run ends as the run would: 2 for a bad file, 4 for what a person must look at', async (t) => {
  const { mmk, write } = await app(t)
  await mmk('up', '1-one.js')
  await write('migrations/1-one.js', `${counting('one')}// edited\n`)
  assert.equal((await mmk('up', '--strict', '--dry-run')).code, 4)
  assert.equal((await mmk('down', '--dry-run')).code, 4)
  await write('migrations/2-two.js', 'export const up = 7')
  assert.equal((await mmk('dry-run', 'up')).code, 2)
  assert.equal((await mmk('dry-run', 'sideways')).code, 2)
})
