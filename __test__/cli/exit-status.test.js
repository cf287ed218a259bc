/**
 * The table of exit statuses in docs/cli.md, row by row: what it says is what the code has, and each
 * status is one that `mmk` ends with.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { EXIT_BY_CODE, exitStatus } from '../../lib/cli/exit.js'
import { errorOf } from '../../lib/errors.js'
import { counting } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { applied, edited, three, throwing } from '../helpers/given.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

/** @typedef {import('../helpers/snapshots.js').App} App */

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
const rows = [...page.matchAll(/^\| (\d+) \| (.*) \| (.*?) ?\|$/gm)].map(([, status, , codes]) => ({
  status: Number(status),
  codes: [...codes.matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code),
}))

/** A body that changes its own entry, as nobody but the run that claimed it may. */
const meddling = counting(
  'one',
  "await db.collection('_mmk_migrations').updateMany({}, { $inc: { version: 1 } })",
)
const losing = counting(
  'one',
  `await db.collection('_mmk_locks').deleteOne({ _id: 'mmk_lock' })
  await new Promise((resolve) => signal.addEventListener('abort', resolve))`,
)

/**
 * @typedef {{
 *   args: string[]
 *   status: number
 *   migrations?: Record<string, string>
 *   given?: (app: App) => Promise<unknown>
 *   env?: NodeJS.ProcessEnv
 * }} Example
 */

/** @type {Record<string, Example>} */
const examples = {
  'something was done': { args: ['up'], status: 0 },
  'nothing had to be done': { args: ['down'], status: 0 },
  'a migration failed': { args: ['up'], status: 1, migrations: { '1-one.js': throwing } },
  'a migration ended the process with 0': {
    args: ['up'],
    status: 1,
    migrations: { '1-one.js': 'export function up() { process.exit(0) }' },
  },
  'the server can not be reached': {
    args: ['status'],
    status: 1,
    env: { MMK_URI: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200' },
  },
  'status --check found something pending': { args: ['status', '--check'], status: 1 },
  'the usage was wrong': { args: ['up', '--stepp'], status: 2 },
  'the configuration was wrong': { args: ['up'], status: 2, env: { MMK_URI: 'nonsense' } },
  'a file can not be used': { args: ['up'], status: 2, migrations: { '1-one.js': 'export {}' } },
  'something had to be confirmed': { args: ['down', '--force'], status: 2 },
  'the lock was held': {
    args: ['up'],
    status: 3,
    given: ({ database }) => holdLock(database),
  },
  'unlock was not told to release': {
    args: ['unlock'],
    status: 3,
    given: ({ database }) => holdLock(database),
  },
  'a file has changed, under --strict': {
    args: ['up', '--strict'],
    status: 4,
    given: edited('1-one.js'),
  },
  'status --check found a file that has changed': {
    args: ['status', '--check'],
    status: 4,
    given: edited('1-one.js'),
  },
  'import met a malformed document of a pending file': {
    args: ['import'],
    status: 4,
    given: ({ database: { db } }) =>
      db.collection('changelog').insertOne({ fileName: '1-one.js', appliedAt: 'yesterday' }),
  },
  'the lock was lost': {
    args: ['up', '--lock-ttl', '2'],
    status: 5,
    migrations: { '1-one.js': losing },
  },
  'an entry was moved': { args: ['up'], status: 5, migrations: { '1-one.js': meddling } },
}

describe('the table of exit statuses', () => {
  test('has every code once, in the row of its status', () => {
    const listed = rows.flatMap(({ status, codes }) => codes.map((code) => [code, status]))
    assert.deepEqual(listed.sort(), Object.entries(EXIT_BY_CODE).sort())
  })

  for (const { status, codes } of rows) {
    test(`${status} is what ${codes.join(', ') || 'no error'} gives`, () => {
      for (const code of codes) assert.equal(exitStatus(errorOf(code, 'so it is', {})), status)
    })
  }

  test('70 is what an error that is none of ours gives', () => {
    assert.equal(exitStatus(new TypeError('x is not a function')), 70)
  })

  for (const [what, example] of Object.entries(examples)) {
    test(`${example.status}: ${what}`, async (t) => {
      assert.ok(
        rows.some(({ status }) => status === example.status),
        'it is in the table',
      )
      const { migrations = three, given, env, args } = example
      const database = await freshDatabase(t)
      const app = { ...(await project(t, migrations, database)), database }
      await given?.(app)
      const { code, stdout, stderr } = await app.mmk(args, env ? { env } : {}).ended
      assert.equal(code, example.status, stdout + stderr)
    })
  }

  for (const [signal, status] of /** @type {const} */ ([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])) {
    test(`${status}: ${signal} during a run`, async (t) => {
      assert.match(page, new RegExp(`\\b${status}\\b`))
      const waiting = counting(
        'one',
        "console.error('began'); await new Promise((done) => signal.addEventListener('abort', done))",
      )
      const database = await freshDatabase(t)
      const { mmk } = await project(t, { '1-one.js': waiting }, database)
      const run = mmk(['up'])
      await poll(() => run.stderr().includes('began'), {
        what: 'the body began',
        deadlineMs: 60_000,
      })
      run.kill(signal)
      const { code, stdout, stderr } = await run.ended
      assert.equal(code, status, stdout + stderr)
    })
  }
})

test('applying what is applied is no failure', async (t) => {
  const database = await freshDatabase(t)
  const app = { ...(await project(t, three, database)), database }
  await applied()(app)
  assert.equal((await app.mmk(['up', '1-one.js']).ended).code, 0)
})
