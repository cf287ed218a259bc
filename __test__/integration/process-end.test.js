/**
 * No handle of ours keeps a process alive: it ends by itself within a second of the promise settling.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { counting } from '../helpers/bodies.js'
import { start } from '../helpers/child.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const app = `
import { runMigrations } from 'mongo-migrate-kit'
const outcome = await runMigrations().then(({ applied }) => applied.length + ' applied', (error) => error.code)
process.stdout.write(JSON.stringify({ outcome, settledAt: Date.now() }) + '\\n')
`

/** The same, in a thread of its own. */
const threaded = `
import { Worker } from 'node:worker_threads'
new Worker(new URL('./app.js', import.meta.url))
`

/** The same, in a test of the app. */
const tested = `
import { test } from 'node:test'
test('migrates', () => import('./app.js'))
`

/**
 * Start the app in one of its three forms.
 *
 * @type {Record<string, (app: import('../helpers/project.js').Project) => import('../helpers/child.js').Child>}
 */
const forms = {
  'of its own': ({ node }) => node('app.js'),
  'with a worker thread': ({ node }) => node('threaded.js'),
  'of a test runner': ({ folder, env }) =>
    start(process.execPath, ['--test', join(folder, 'app.test.js')], { cwd: folder, env }),
}

/** @type {Record<string, { migrations: Record<string, string>, held?: boolean, uri?: string }>} */
const outcomes = {
  '1 applied': { migrations: { '1.js': counting('1') } },
  '0 applied': { migrations: {} },
  MIGRATION_EXECUTION_FAILED: { migrations: { '1.js': 'export function up() { throw 1 }' } },
  MIGRATION_LOAD_FAILED: { migrations: { '1.js': 'export function up() {' } },
  LOCK_ALREADY_HELD: { migrations: { '1.js': counting('1') }, held: true },
  CONNECTION_FAILED: {
    migrations: {},
    uri: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=1000',
  },
}

for (const [form, startApp] of Object.entries(forms)) {
  for (const [outcome, { migrations, held, uri }] of Object.entries(outcomes)) {
    test(`a process ${form} ends within a second after: ${outcome}`, async (t) => {
      const database = await freshDatabase(t)
      if (held) await holdLock(database)
      const env = { ...database.env, ...(uri && { MMK_URI: uri }) }
      const created = await project(t, migrations, { env })
      await created.write('app.js', app)
      await created.write('threaded.js', threaded)
      await created.write('app.test.js', tested)

      const child = startApp(created)
      const { code, stdout, stderr } = await child.ended
      const endedAt = Date.now()

      assert.equal(code, 0, stdout + stderr)
      const report = JSON.parse(/\{"outcome".*\}/.exec(stdout)?.[0] ?? '{}')
      assert.equal(report.outcome, outcome, stdout + stderr)
      assert.ok(endedAt - report.settledAt <= 1000, `${endedAt - report.settledAt} ms`)
    })
  }
}
