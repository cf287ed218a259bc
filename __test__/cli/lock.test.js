/**
 * What a person sees of the lock: the busy message, the wait, and `mmk unlock`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

/** @param {import('node:test').TestContext} t */
async function app(t) {
  const database = await freshDatabase(t)
  const created = await project(t, { '1-one.js': counting('one') }, database)
  return { database, ...created }
}

const clock = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`
const iso = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`

test('a second deploy stops at once and says who holds the lock and when it frees itself', async (t) => {
  const { database, mmk } = await app(t)
  await holdLock(database)

  const { code, stdout, stderr } = await mmk(['up']).ended

  assert.equal(code, 3, stdout + stderr)
  const lines = stderr.trimEnd().split('\n').slice(-5)
  const expected = [
    '✖ LOCK_ALREADY_HELD: The migration lock is held by the default namespace',
    `  Holder: host deploy-a, pid 16152, user asha, since ${clock} \\(\\d+s ago\\)`,
    '  Why: all repos on this database take turns — one migration run at a time',
    `  If the holder crashed, the lock frees itself at ${clock}; \`mmk unlock\` releases it now \\(check the holder first\\)`,
    '  Try: run again when it finishes \\(app start: runMigrations\\({ onLockHeld: "wait" }\\)\\)',
  ]
  for (const [index, line] of expected.entries()) {
    assert.match(lines[index] ?? '', new RegExp(`^${line}$`))
  }
  assert.deepEqual(await runsOf(database, 'one'), { ups: 0, downs: 0 })
})

test('the busy message names the namespace of a holder that has one', async (t) => {
  const { database, mmk } = await app(t)
  await holdLock(database, { namespace: 'orders-worker' })

  const { stderr } = await mmk(['up']).ended

  assert.match(stderr, /The migration lock is held by namespace "orders-worker"/)
})

test('up --wait runs once the holder has released, and says for whom it waits', async (t) => {
  const { database, mmk } = await app(t)
  await holdLock(database)
  const waiting = mmk(['up', '--wait'])
  await poll(() => waiting.stderr().includes('deploy-a'), { what: 'it names the holder' })
  await database.db.collection('_mmk_locks').deleteMany({})

  const { code, stdout, stderr } = await waiting.ended

  assert.equal(code, 0, stdout + stderr)
  assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
})

test('up --wait=ms gives up after that time with the busy message', async (t) => {
  const { database, mmk } = await app(t)
  await holdLock(database)

  const { code, stderr } = await mmk(['up', '--wait=500']).ended

  assert.equal(code, 3, stderr)
  assert.match(stderr, /LOCK_ALREADY_HELD/)
})

test('up --no-lock warns and runs beside a holder', async (t) => {
  const { database, mmk } = await app(t)
  await holdLock(database)

  const { code, stderr } = await mmk(['up', '--no-lock']).ended

  assert.equal(code, 0, stderr)
  assert.match(stderr, /^⚠ Running without a lock \(--no-lock\) — concurrent runs are unsafe$/m)
  assert.deepEqual(await runsOf(database, 'one'), { ups: 1, downs: 0 })
})

test('unlock says so when nothing is locked', async (t) => {
  const { mmk } = await app(t)

  const { code, stdout, stderr } = await mmk(['unlock']).ended

  assert.equal(code, 0, stderr)
  assert.match(stdout, /No migration lock is currently held/)
})

test('unlock without a terminal and without --yes shows the holder, exits 3 and names --yes', async (t) => {
  const { database, mmk } = await app(t)
  const held = await holdLock(database)

  const { code, stdout, stderr } = await mmk(['unlock']).ended

  assert.equal(code, 3, stdout + stderr)
  const line = `⚠ Lock held by the default namespace: pid 16152 on deploy-a \\(asha\\) since ${iso}`
  assert.match(stderr, new RegExp(line))
  assert.match(stderr, /--yes/)
  assert.equal((await database.lock())?.owner, held.owner)
})

test('unlock --yes releases a lock, with a loud warning when it belongs to another namespace', async (t) => {
  const { database, mmk } = await app(t)
  await holdLock(database, { namespace: 'orders-worker', pid: 41 })

  const { code, stdout, stderr } = await mmk(['unlock', '--yes', '--namespace', 'orders-api']).ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(
    stderr,
    /⚠ Lock held by namespace "orders-worker": pid 41 on deploy-a \(asha\) since/,
  )
  assert.match(
    stderr,
    /⚠ This lock belongs to "orders-worker", not this repo \("orders-api"\) — releasing it may let two migrations run at once/,
  )
  assert.match(stdout, /✔ Lock released/)
  assert.equal(await database.lock(), null)
})

test('a lock that says nothing readable counts as held and can be released', async (t) => {
  const { database, mmk } = await app(t)
  await database.db.collection('_mmk_locks').insertOne({
    _id: /** @type {any} */ ('mmk_lock'),
    expiresAt: 'tomorrow',
  })

  const up = await mmk(['up']).ended
  const unlock = await mmk(['unlock', '--yes']).ended

  assert.equal(up.code, 3, up.stdout + up.stderr)
  assert.equal(unlock.code, 0, unlock.stdout + unlock.stderr)
  assert.equal(await database.lock(), null)
})

test('control characters in a lock never reach the terminal', async (t) => {
  const { database, mmk } = await app(t)
  await holdLock(database, { host: 'evil\u001b[2Jhost\nfake line', namespace: 'a\u0007b' })

  const { stderr } = await mmk(['up']).ended

  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what we look for
  assert.doesNotMatch(stderr, /\u001b|\u0007|^fake line/m)
})
