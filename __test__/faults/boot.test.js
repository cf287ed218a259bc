/**
 * A deploy or an app's start, as pipelines and containers see it: exit codes, and processes that end.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { start } from '../helpers/child.js'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const failing = { '1-fails.js': `export function up() { throw new Error('no') }` }
const one = { '1.js': counting('1') }

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 */
async function repo(t, migrations) {
  const database = await freshDatabase(t)
  return { database, ...(await project(t, migrations, database)) }
}

/** @type {Record<string, [string, ...string[]]>} */
const callers = {
  'npm run': ['npm', 'run', 'migrate'],
  npx: ['npx', '--no-install', 'mmk', 'up'],
  'a shell with set -e': ['sh', '-ec', 'npm run migrate; echo went on'],
}

for (const [caller, [command, ...args]] of Object.entries(callers)) {
  test(`BOOT-01: a failed migration fails the pipeline that ${caller} is in`, async (t) => {
    const { folder, env, write } = await repo(t, failing)
    const scripts = { migrate: 'node node_modules/mongo-migrate-kit/bin/mmk.js up' }
    await write('package.json', JSON.stringify({ name: 'app', type: 'module', scripts }))
    await write(
      'node_modules/.bin/mmk',
      '#!/bin/sh\nexec node node_modules/mongo-migrate-kit/bin/mmk.js "$@"\n',
    )
    await start('chmod', ['+x', 'node_modules/.bin/mmk'], { cwd: folder }).ended

    const { code, stdout, stderr } = await start(command, args, { cwd: folder, env }).ended

    assert.notEqual(code, 0, stdout + stderr)
    assert.match(stderr, /1-fails\.js/)
    assert.doesNotMatch(stdout, /went on$/m)
  })
}

test('BOOT-02: nothing to do is success, and so is a status with pending files', async (t) => {
  const { mmk, write } = await repo(t, one)
  for (const args of [['up'], ['up'], ['down'], ['down']]) {
    const { code, stdout, stderr } = await mmk(args).ended
    assert.equal(code, 0, `${args}: ${stdout}${stderr}`)
  }
  await write('migrations/2.js', counting('2'))

  const status = await mmk(['status']).ended
  assert.equal(status.code, 0, status.stderr)
  assert.equal((await mmk(['status', '--check']).ended).code, 1)
})

/** @type {Record<string, Record<string, string>>} */
const apps = { 'one applied': one, 'nothing pending': {}, 'a failure': failing }

for (const [outcome, migrations] of Object.entries(apps)) {
  test(`BOOT-03: an app's process ends by itself after ${outcome}`, async (t) => {
    const { node, write } = await repo(t, migrations)
    await write(
      'app.js',
      `import { runMigrations } from 'mongo-migrate-kit'
       await runMigrations({ logger: null }).catch(() => {})
       console.log('done', JSON.stringify(process.getActiveResourcesInfo()))`,
    )

    const app = node('app.js')
    await poll(() => app.stdout().includes('done'), { what: 'it is done', everyMs: 5 })
    const done = performance.now()
    const { code, stdout, endedAt } = await app.ended

    assert.equal(code, 0, stdout)
    assert.ok(endedAt - done <= 2000, `it ended ${endedAt - done} ms later`)
    assert.doesNotMatch(stdout, /TCP|TLS|Timeout|ThreadSafe/)
  })
}

const listening = `
import { createServer } from 'node:http'
createServer().listen(0, '127.0.0.1')
${counting('1')}`

test('BOOT-04: mmk ends with the right status although a migration left a server listening', async (t) => {
  const { mmk, database } = await repo(t, { '1-listens.js': listening })

  const { code, signal, stdout, stderr } = await mmk(['up'], { timeoutMs: 15_000 }).ended

  assert.equal(signal, null, `it did not end: ${stdout}${stderr}`)
  assert.equal(code, 0, stdout + stderr)
  assert.equal((await runsOf(database, '1')).ups, 1)
})

test('BOOT-04: the library never ends the process of an app that listens', async (t) => {
  const { node, write } = await repo(t, { '1-listens.js': listening })
  await write(
    'app.js',
    `import { runMigrations } from 'mongo-migrate-kit'
     await runMigrations()
     setTimeout(() => { console.log('still there'); process.exit(7) }, 500)`,
  )

  const { code, stdout } = await node('app.js').ended

  assert.equal(code, 7)
  assert.match(stdout, /still there/)
})

const needConsent = [
  ['up', '1.js', '--force'],
  ['unlock'],
  ['up'],
  ['down'],
  ['status'],
  ['list'],
  ['create', 'x'],
]

test('BOOT-05: no command asks when nobody can answer, and none colours what it prints', async (t) => {
  const { mmk, database } = await repo(t, { '1.js': counting('1', waitAtGate) })
  const holder = mmk(['up'])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })

  for (const args of needConsent) {
    const env = { CI: '1', NO_COLOR: undefined }
    const { code, signal, stdout, stderr } = await mmk(args, { env, timeoutMs: 20_000 }).ended
    assert.equal(signal, null, `${args.join(' ')} waits for an answer`)
    assert.doesNotMatch(stdout + stderr, /\[y\/N\]/)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what we look for
    assert.doesNotMatch(stdout + stderr, /\u001b/)
    if (args.includes('--force') || args[0] === 'unlock') {
      assert.notEqual(code, 0)
      assert.match(stderr, /--yes/)
    }
  }
  await openGate(database)
  assert.equal((await holder.ended).code, 0)
})

test('BOOT-06: an app answers its health checks while it migrates', async (t) => {
  const migrations = Object.fromEntries(
    Array.from({ length: 300 }, (_, i) => [`${1000 + i}.js`, 'export function up() {}']),
  )
  const { node, write, database } = await repo(t, {
    ...migrations,
    '9999-slow.js': counting('1', waitAtGate),
  })
  await write(
    'app.js',
    `import { monitorEventLoopDelay } from 'node:perf_hooks'
     import { runMigrations } from 'mongo-migrate-kit'
     const delay = monitorEventLoopDelay({ resolution: 5 })
     delay.enable()
     await runMigrations({ logger: null })
     console.log(JSON.stringify({ p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 }))`,
  )

  const app = node('app.js')
  await poll(async () => (await runsOf(database, '1')).ups === 1, {
    what: 'the last body began',
    deadlineMs: 60_000,
  })
  await openGate(database)
  const { code, stdout, stderr } = await app.ended

  assert.equal(code, 0, stdout + stderr)
  const { p99, max } = JSON.parse(stdout)
  t.diagnostic(`delay of the event loop: p99 ${p99.toFixed(1)} ms, longest ${max.toFixed(1)} ms`)
  assert.ok(p99 <= 100, `p99 ${p99} ms`)
})

test('BOOT-07: a server that is down is a connection failure with its address, whatever the wait for the lock', async (t) => {
  const { node, write } = await repo(t, one)
  await write(
    'app.js',
    `import { runMigrations } from 'mongo-migrate-kit'
     const options = { onLockHeld: 'wait', lockWaitTimeoutMs: 60_000, logger: null }
     await runMigrations(options).catch((error) => console.log(error.code, error.message))`,
  )
  const env = { MMK_URI: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=1500' }

  const began = performance.now()
  const { stdout, stderr, endedAt } = await node('app.js', { env }).ended

  assert.match(stdout, /^CONNECTION_FAILED .*127\.0\.0\.1:1/s, stderr)
  assert.ok(endedAt - began <= 10_000)
})
