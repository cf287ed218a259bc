/**
 * Secrets of every kind, and everything that comes out: none comes through.
 *
 * Each planted secret contains the same word, which stands nowhere else.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { failureDocument, failureText } from '../../lib/cli/failure.js'
import { api } from '../helpers/api.js'
import { counting } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'
import { replicaSet } from '../helpers/servers.js'

const word = 'hunter2'
const hidden = /hunter2|hunter%32/i

/**
 * @param {string} text
 * @param {string} what it is
 */
function assertClean(text, what) {
  const at = text.search(hidden)
  assert.equal(at, -1, `${what}: …${text.slice(Math.max(at - 200, 0), at + 20)}…`)
}

/** How a password gets into a URI: as it should, and in every way that goes wrong. */
const uris = [
  'mongodb://ann:hunter2@127.0.0.1:1/app',
  'mongodb://ann:x%40hunter2%2Fy@127.0.0.1:1/app',
  'mongodb://ann:x:hunter2@127.0.0.1:1/app',
  'mongodb://ann:x?hunter2@127.0.0.1:1/app',
  'mongodb://ann:hunter2@127.0.0.1:1/app?nonsense=1',
  'mongodb://ann:hunter2@127.0.0.1:999999/app',
  'mongodb://ann:x%hunter2@127.0.0.1:1/app',
  'mongodb://ann:x@hunter2@127.0.0.1:1/app',
  'mongodb://ann:x/hunter2@127.0.0.1:1/app',
  'mongodb://ann:x hunter2@127.0.0.1:1/app',
  'mongodb://:hunter2@127.0.0.1:1/app',
  'mongo://ann:hunter2@127.0.0.1:1/app',
  'MongoDB://ann:hunter2@127.0.0.1:1/app',
  ' mongodb://ann:hunter2@127.0.0.1:1/app',
  '"mongodb://ann:hunter2@127.0.0.1:1/app"',
  "'mongodb://ann:hunter2@127.0.0.1:1/app'",
  'ann:hunter2@127.0.0.1:1/app',
  'mongodb://ann:hunter2',
  'mongodb+srv://ann:hunter2@127.0.0.1:1/app',
  'mongodb://127.0.0.1:1/app?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:hunter2',
  'mongodb://AKIA:hunter2@127.0.0.1:1/app?authMechanism=MONGODB-AWS',
  'mongodb://127.0.0.1:1/app?tls=true&tlsCertificateKeyFilePassword=hunter2',
  'mongodb://127.0.0.1:1/app?tls=false&tlsCertificateKeyFilePassword=hunter2',
  'mongodb://127.0.0.1:1/app?proxyHost=127.0.0.1&proxyPort=1&proxyUsername=u&proxyPassword=hunter2',
  'mongodb://127.0.0.1:1/app?proxyHost=127.0.0.1&proxyUsername=u&proxyPassword=x&hunter2=y',
  'mongodb://127.0.0.1:1/app?proxyPassword=hunter2',
]

/** Each with a secret, in the places where the Node driver takes one. @type {Record<string, any>[]} */
const clientOptions = [
  { auth: { username: 'ann', password: 'hunter2/@:' } },
  { tls: true, tlsCertificateKeyFilePassword: 'hunter2' },
  { proxyHost: '127.0.0.1', proxyPort: 1, proxyUsername: 'u', proxyPassword: 'hunter2' },
  { authMechanism: 'MONGODB-AWS', authMechanismProperties: { AWS_SESSION_TOKEN: 'hunter2' } },
  { authMechanismProperties: { OIDC_CALLBACK: () => 'hunter2', token: 'hunter2' } },
  { passphrase: 'hunter2' },
]

/** @param {any} error everything that is told of it, to people and to programs */
const toldOf = (error) =>
  [
    inspect(error, { depth: 12 }),
    error.stack,
    JSON.stringify(error.context),
    JSON.stringify(failureDocument(error)),
    failureText(error, { verbose: true }),
  ].join('\n')

test('CFG-01: no error over a connection repeats a secret, wherever the configuration has it', async (t) => {
  const { migrationsDir } = await project(t)
  const base = { uri: 'mongodb://127.0.0.1:1', dbName: 'app', migrationsDir, logger: null }
  const patience = { serverSelectionTimeoutMS: 100 }
  const attempts = [
    ...uris.map((uri) => ({ uri, mongoClientOptions: patience })),
    ...uris.map((lockUri) => ({
      lockUri: lockUri.replace(/\?|$/, '?serverSelectionTimeoutMS=100&'),
    })),
    ...clientOptions.map((options) => ({ mongoClientOptions: { ...patience, ...options } })),
  ]
  await Promise.all(
    attempts.map(async (config) => {
      const error = await new MigratorKit(/** @type {any} */ ({ ...base, ...config }))
        .status()
        .then(
          () => assert.fail(`it was accepted: ${inspect(config)}`),
          (reason) => reason,
        )
      assert.match(error.code, /^(CONFIG_INVALID|CONNECTION_FAILED)$/, error.stack)
      assertClean(toldOf(error), inspect(config))
    }),
  )
})

test('CFG-01: no command prints a secret, whether it came by a flag, a variable, .env, or a file', async (t) => {
  const { mmk, write } = await project(t, { '1.js': counting('1') })
  const uri = `mongodb://ann:${word}@127.0.0.1:1/app?serverSelectionTimeoutMS=100`
  await write(
    'object.mjs',
    `export default { uri: '${uri}', mongoClientOptions: { auth: { username: 'a', password: '${word}' } } }`,
  )
  await write(
    'provider.mjs',
    `const secret = async () => 'an ${word} of the store'\nexport default async () => ({ uri: \`mongodb://ann:\${encodeURIComponent(await secret())}@127.0.0.1:1/app?serverSelectionTimeoutMS=100\` })`,
  )
  await write('failing.mjs', `export default () => { throw new Error('the store refused ${uri}') }`)
  await write('dotenv/.env', `MMK_URI='"${uri}"'\nMMK_DB=${uri}\n`)
  const MMK_URI = uri
  /** @type {[args: string[], options?: import('../helpers/child.js').Options][]} */
  const runs = [
    [['up', '--uri', uri]],
    [['up', '--json', '--uri', uri.replace('?', '?hunter=1&')]],
    [['status', '--uri', `'${uri}'`, '--json']],
    [['status'], { env: { MMK_URI } }],
    [['unlock', '--yes'], { env: { MMK_URI: 'mongodb://127.0.0.1:1/app', MMK_LOCK_URI: uri } }],
    [['down'], { cwd: (await write('dotenv/x', '')).slice(0, -2) }],
    [['up', '--config', 'object.mjs']],
    [['redo', '--json', '--config', 'provider.mjs']],
    [['up', '--config', 'failing.mjs']],
    [['import', '--from', uri], { env: { MMK_URI } }],
    [['up', uri]],
    [['up', `--urii=${uri}`]],
  ]
  for (const [args, options] of runs) {
    const { code, stdout, stderr } = await mmk([...args, '--verbose'], options).ended
    assert.notEqual(code, 0, args.join(' '))
    assert.notEqual(code, 70, stderr)
    assertClean(stdout + stderr, args.join(' '))
  }
})

test('a migration that throws secrets leaves none in errors, events, log lines or documents', async (t) => {
  const user = await freshDatabase(t)
  const password = `${word} /@:%+ü`
  await user.db.command({
    createUser: 'redacted',
    pwd: password,
    roles: [{ role: 'root', db: 'admin' }],
  })
  const uri = `${replicaSet.replace('//', `//redacted:${encodeURIComponent(password)}@`)}&authSource=${user.name}`
  const thrown = `
    import { inspect } from 'node:util'
    export const description = 'connects to ${uri}'
    export async function up({ client }) {
      const { credentials } = client.options
      const error = new Error(['failed with', '${uri}', credentials.password, inspect(credentials),
        encodeURIComponent(credentials.password), 'AWS_SESSION_TOKEN=${word}'].join(' '))
      error.codeName = '${uri}'
      throw error
    }`
  const { config, database, onEvent, events } = await api(t, {
    '1.js': counting('1'),
    '2.js': thrown,
  })
  /** @type {string[]} */
  const lines = []
  const log = (/** @type {string} */ line) => void lines.push(line)
  const logger = { info: log, success: log, warn: log, error: log, dim: log }

  const error = await runMigrations({ ...config, uri, logger, onEvent }).then(
    () => assert.fail('it was applied'),
    (reason) => reason,
  )

  await user.db.command({ dropUser: 'redacted' })
  assert.equal(error.code, 'MIGRATION_EXECUTION_FAILED', error.stack)
  // The thrown value is the user's own, and stays what it is.
  assert.match(error.cause.message, hidden)
  const told = [
    error.message,
    error.stack,
    JSON.stringify(error.context),
    failureText(error, { verbose: true }),
  ]
  const documents = await Promise.all(
    ['_mmk_migrations', '_mmk_locks'].map((name) => database.db.collection(name).find().toArray()),
  )
  assert.ok(lines.length > 0 && events.length > 0 && documents.flat().length > 2)
  for (const text of [
    ...told,
    ...lines,
    JSON.stringify(failureDocument(error)),
    inspect(events, { depth: 12 }),
    inspect(documents, { depth: 12 }),
  ]) {
    assertClean(text, 'the run')
  }
})
