import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { resolveConfig, toSettings } from '../../lib/config/index.js'
import { suggest } from '../../lib/suggest.js'
import { folder } from './folder.js'

const GIVEN = { uri: 'mongodb://localhost:27017', dbName: 'app' }

/**
 * @param {import('../../lib/config/index.js').Request} request
 * @returns {Promise<any>} what it was refused with
 */
async function refused(request) {
  return resolveConfig({ env: {}, ...request }).then(
    () => assert.fail('it was accepted'),
    (error) => {
      assert.equal(error.code, 'CONFIG_INVALID')
      return error
    },
  )
}

describe('the configuration', () => {
  it('needs a URI and a database, and has a default for everything else', async (t) => {
    const cwd = await folder(t, {})
    const { config, provenance, configFile, warnings } = await resolveConfig({
      argument: GIVEN,
      cwd,
      env: {},
    })
    assert.deepEqual([configFile, warnings], [null, []])
    assert.equal(config.migrationsDir, join(cwd, 'migrations'))
    assert.equal(config.lockTTLSeconds, 60)
    assert.equal(config.onLockHeld, 'throw')
    assert.equal(config.onLockLost, 'stop')
    assert.deepEqual(config.fileExtensions, ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts'])
    assert.deepEqual([provenance.uri, provenance.strict], ['argument', 'default'])
    assert.ok(Object.isFrozen(config))
  })

  it('takes each key from the first of flags, argument, environment, .env and file', async (t) => {
    const cwd = await folder(t, {
      '.env': '\uFEFFMMK_DB=dotenv\nMMK_COLLECTION=dotenv\nMMK_LOCK_TTL=9\nMMK_STRICT=\n',
      'mmk.config.json': JSON.stringify({
        uri: 'mongodb://file',
        dbName: 'file',
        migrationsCollection: 'file',
        lockTTLSeconds: 8,
        strict: true,
        service: 'file',
      }),
    })
    /** @type {NodeJS.ProcessEnv} */
    const env = { MMK_DB: 'env', MMK_LOCK_TTL: '10', MMK_SERVICE: ' ' }
    const { config, provenance } = await resolveConfig({
      cwd,
      env,
      flags: { dbName: 'flag', namespace: undefined },
      argument: { dbName: 'argument', lockTTLSeconds: 11, uri: undefined },
    })
    const { uri, dbName, migrationsCollection, lockTTLSeconds, strict, service } = config
    assert.deepEqual(
      [uri, dbName, migrationsCollection, lockTTLSeconds, strict, service],
      ['mongodb://file', 'flag', 'dotenv', 11, true, 'file'],
    )
    assert.deepEqual(
      [provenance.uri, provenance.dbName, provenance.migrationsCollection, provenance.strict],
      ['file', 'flag', 'env', 'file'],
    )
    assert.equal(env.MMK_DB, 'env', 'what is set is never overridden')
    assert.equal(env.MMK_COLLECTION, 'dotenv', 'a config file may read it too')
  })

  it('may name the database in the path of the URI', async (t) => {
    const cwd = await folder(t, {})
    /** @type {[string, string][]} */
    const uris = [
      ['mongodb://a:b@h1:1,h2:2/shop?replicaSet=r', 'shop'],
      ['mongodb+srv://h.example/shop', 'shop'],
      ['mongodb://h/caf%C3%A9', 'café'],
    ]
    for (const [uri, name] of uris) {
      const { config, provenance } = await resolveConfig({ argument: { uri }, cwd, env: {} })
      assert.deepEqual([config.dbName, provenance.dbName], [name, 'uri'])
    }
    const error = await refused({ argument: { uri: 'mongodb://h/my%20shop' }, cwd })
    assert.match(error.message, /dbName must not contain blanks/)
  })

  it('lists every problem at once, each with value, source and remedy', async (t) => {
    const cwd = await folder(t, { 'mmk.config.cjs': 'module.exports = { strikt: true, hooks: 3 }' })
    const error = await refused({
      cwd,
      env: { MMK_LOCK_TTL: 'soon', MMK_SEQUENTIAL: 'perhaps' },
      argument: { uri: 'http://h', onLockHeld: 'panic', lockTtlSeconds: 3 },
    })
    const found = Object.fromEntries(
      error.context.issues.map((/** @type {any} */ issue) => [issue.key, issue]),
    )
    assert.deepEqual(Object.keys(found).sort(), [
      'dbName',
      'hooks',
      'lockTTLSeconds',
      'lockTtlSeconds',
      'onLockHeld',
      'sequential',
      'strikt',
      'uri',
    ])
    assert.match(
      error.message,
      /^Invalid mongo-migrate-kit configuration — 8 problems found:\n\n {2}1\. /,
    )
    assert.match(found.strikt.problem, /did you mean "strict"/)
    assert.match(found.lockTtlSeconds.problem, /did you mean "lockTTLSeconds"/)
    assert.equal(found.strikt.source, 'mmk.config.cjs')
    assert.equal(found.lockTTLSeconds.received, '"soon"')
    assert.equal(found.lockTTLSeconds.source, 'the environment variable MMK_LOCK_TTL')
    assert.match(found.uri.howToSet, /--uri <uri>.*MMK_URI.*mmk\.config/)
    assert.match(error.message, /Received: "panic"\n {5}Read from: the object passed/)
  })

  it('shows no secret of a value that it refuses', async (t) => {
    const cwd = await folder(t, { '.env': `MMK_URI='"mongodb://ann:hunter2@h/app"'` })
    const error = await refused({ cwd, argument: { dbName: 'mongodb://ann:hunter2@h/' } })
    assert.equal(error.context.issues.length, 2)
    assert.ok(!`${error.stack}${JSON.stringify(error.context)}`.includes('hunter2'))
  })

  it('shows a URI without its scheme as it is, if that is all that it lacks', async (t) => {
    const cwd = await folder(t, {})
    const error = await refused({ cwd, argument: { ...GIVEN, uri: 'localhost:27017' } })
    assert.match(error.message, /starts with "mongodb:\/\/".*Received: "localhost:27017"/s)
  })

  it('warns about an environment variable that looks like ours', async (t) => {
    const cwd = await folder(t, {})
    const env = { MMK_LOCK_TLL: '3', MMK_ZZZZZZZZZZZZZZ: '' }
    const { warnings } = await resolveConfig({ cwd, env, argument: GIVEN })
    assert.deepEqual(warnings, [
      'Unknown environment variable MMK_LOCK_TLL — did you mean MMK_LOCK_TTL?',
      'Unknown environment variable MMK_ZZZZZZZZZZZZZZ',
    ])
  })

  it('tells of such a variable beside the problems that it may be the reason for', async (t) => {
    const error = await refused({ cwd: await folder(t, {}), env: { MMK_LOCK_TLL: '3' } })
    const said = 'Unknown environment variable MMK_LOCK_TLL — did you mean MMK_LOCK_TTL?'
    assert.ok(error.message.includes(said), error.message)
    assert.ok(error.context.notes.includes(said))
    assert.equal(error.context.issues.length, 2, 'it is no problem by itself')
  })

  it('can do without a connection where nothing connects', async (t) => {
    const { config } = await resolveConfig({ cwd: await folder(t, {}), env: {}, connects: false })
    assert.equal(config.uri, undefined)
  })

  it('accepts a null logger, and refuses half a logger', async (t) => {
    const cwd = await folder(t, {})
    const { config } = await resolveConfig({ cwd, env: {}, argument: { ...GIVEN, logger: null } })
    assert.equal(config.logger, null)
    const error = await refused({ cwd, argument: { ...GIVEN, logger: { info() {} } } })
    assert.match(error.message, /logger must be null or have the methods .*missing: success, warn/)
  })
})

/** @type {Record<string, string>} */
const FILES = {
  'mmk.config.ts': `enum Db { App = 'app' }
    export default async (): Promise<object> => ({ uri: 'mongodb://h', dbName: Db.App })`,
  'mmk.config.mts': `export default { uri: 'mongodb://h', dbName: 'app' as string }`,
  'mmk.config.js': `module.exports = () => ({ uri: 'mongodb://h', dbName: 'app' })`,
  'mmk.config.mjs': `export default Promise.resolve({ uri: 'mongodb://h', dbName: 'app' })`,
  'mmk.config.cjs': `exports.default = { uri: 'mongodb://h', dbName: 'app' }`,
  'mmk.config.json': '\uFEFF{ "uri": "mongodb://h", "dbName": "app" }',
}

describe('the configuration file', () => {
  for (const type of ['module', 'commonjs']) {
    for (const [name, text] of Object.entries(FILES)) {
      it(`${name} is found and read in a package of type ${type}`, async (t) => {
        const cwd = await folder(t, { 'package.json': JSON.stringify({ type }), [name]: text })
        const { config, configFile } = await resolveConfig({ cwd, env: {} })
        assert.deepEqual([config.uri, config.dbName], ['mongodb://h', 'app'])
        assert.equal(configFile, join(cwd, name))
      })
    }
  }

  it('may lie elsewhere, while paths stay relative to the working directory', async (t) => {
    const cwd = await folder(t, {
      'conf/prod.json': JSON.stringify({ ...GIVEN, migrationsDir: 'm' }),
    })
    const { config } = await resolveConfig({ cwd, env: {}, configPath: 'conf/prod.json' })
    assert.equal(config.migrationsDir, join(cwd, 'm'))
  })

  it('that is shadowed by another is named in a warning', async (t) => {
    const cwd = await folder(t, { 'mmk.config.js': '', 'mmk.config.json': JSON.stringify(GIVEN) })
    const { warnings } = await resolveConfig({ cwd, env: {}, argument: GIVEN })
    assert.deepEqual(warnings, ['mmk.config.json is ignored, because there is a mmk.config.js too'])
  })

  it('that is missing is told with the folder and the names that were looked for', async (t) => {
    const cwd = await folder(t, {})
    const error = await refused({ cwd })
    assert.match(error.message, /uri is required.*dbName is required/s)
    const looked = `looked in ${cwd} for mmk.config.ts, .mts, .js, .mjs, .cjs, .json`
    assert.ok(error.message.includes(looked), error.message)
    assert.equal(error.hint, null)
    assert.deepEqual(error.context.notes.length, 1)
  })

  it('of a folder further up is named, and not read', async (t) => {
    const root = await folder(t, {
      'mmk.config.json': JSON.stringify(GIVEN),
      'packages/api/migrations/1.js': '',
    })
    const error = await refused({ cwd: join(root, 'packages', 'api') })
    assert.ok(error.hint.includes(join(root, 'mmk.config.json')), error.hint)
    assert.match(error.hint, /--config/)
  })

  it('is not missing when another was named, or when all is set without one', async (t) => {
    const cwd = await folder(t, { 'conf/a.json': '{}' })
    const named = await refused({ cwd, configPath: 'conf/a.json' })
    assert.doesNotMatch(named.message, /looked in/)
    const wrong = await refused({ cwd, argument: { ...GIVEN, strict: 3 } })
    assert.doesNotMatch(wrong.message, /looked in/)
  })

  it('of a kind that is not read is named, with the kinds that are', async (t) => {
    const cwd = await folder(t, {
      'mmk.config.cts': '',
      'mmk.config.yaml': '',
      'mmk.config.toml': '',
      'mmk.config.js.map': '',
      'mmk.config.js.bak': '',
      'mmk.config.bak': '',
    })
    const { warnings } = await resolveConfig({ cwd, env: {}, argument: GIVEN })
    assert.deepEqual(warnings, [
      'mmk.config.cts is not read, unless --config names it. What is read: mmk.config.ts, .mts, .js, .mjs, .cjs, .json',
      'mmk.config.toml is not read. What is read: mmk.config.ts, .mts, .js, .mjs, .cjs, .json',
      'mmk.config.yaml is not read. What is read: mmk.config.ts, .mts, .js, .mjs, .cjs, .json',
    ])
    const { message } = await refused({ cwd })
    for (const warning of warnings) assert.ok(message.includes(warning), message)
  })

  it('is refused by name when it is missing, broken, or exports something else', async (t) => {
    const cwd = await folder(t, {
      'a.json': '{ nope',
      'b.mjs': 'export default {\n  uri: ,\n}',
      'c.mjs': `export default () => { throw new Error('no vault, mongodb://ann:hunter2@h/') }`,
      'd.cjs': 'module.exports = [1]',
      'e.yaml': '',
      'f.mjs': `export default { get uri() { throw new Error('no vault') } }`,
    })
    /** @type {[string, RegExp][]} */
    const expected = [
      ['gone.js', /does not exist: .*gone\.js$/],
      ['a.json', /a\.json: /],
      ['b.mjs', /b\.mjs: Unexpected token ',' \(.*b\.mjs:2:\d+\)$/],
      ['c.mjs', /c\.mjs: its function failed: no vault, mongodb:\/\/\*\*\*:\*\*\*@h\/$/],
      ['d.cjs', /must export an object, or a function that returns one: received a list of 1/],
      ['e.yaml', /must end in \.ts,/],
      ['f.mjs', /f\.mjs: one of its values failed: no vault$/],
    ]
    for (const [configPath, message] of expected) {
      assert.match((await refused({ cwd, configPath })).message, message)
    }
  })
})

describe('the settings for the core', () => {
  it('say who we are', async (t) => {
    const cwd = await folder(t, { 'package.json': '{ "name": "shop" }' })
    const { config } = await resolveConfig({ cwd, env: {}, argument: GIVEN })
    const settings = toSettings(config, { NODE_ENV: 'production' })
    assert.equal(settings.pid, process.pid)
    assert.ok(settings.user.length > 0 && settings.host.length > 0)
    assert.deepEqual(
      [settings.environment, settings.service, settings.namespace],
      ['production', 'shop', null],
    )
    assert.equal(toSettings(config, {}).environment, 'development')
  })

  it('name the service of the nearest package, even when that has no name', async (t) => {
    const cwd = await folder(t, { 'package.json': '{ "name": "outer" }', 'in/package.json': '{}' })
    const argument = { ...GIVEN, migrationsDir: 'in/migrations' }
    const { config } = await resolveConfig({ cwd, env: {}, argument })
    assert.equal(toSettings(config, {}).service, null)
    const named = { ...config, service: ' mine ' }
    assert.equal(toSettings(named, {}).service, 'mine')
  })
})

describe('a name that is another spelling of an option', () => {
  for (const [typed, meant] of [
    ['MMK_DBNAME', 'MMK_DB'],
    ['MMK_DB_NAME', 'MMK_DB'],
    ['MMK_DATABASE', 'MMK_DB'],
    ['MMK_DATABASE_NAME', 'MMK_DB'],
    ['MMK_URL', 'MMK_URI'],
    ['MMK_MONGO_URI', 'MMK_URI'],
    ['MMK_MONGODB_URL', 'MMK_URI'],
    ['MMK_DATABASE_URL', 'MMK_URI'],
    ['MMK_CONNECTION_STRING', 'MMK_URI'],
    ['MMK_DIR', 'MMK_MIGRATIONS_DIR'],
    ['MMK_MIGRATIONS_COLLECTION', 'MMK_COLLECTION'],
    ['MMK_LOCK_TTL_SECONDS', 'MMK_LOCK_TTL'],
    ['MMK_LOCKTTL', 'MMK_LOCK_TTL'],
    ['MMK_MIGRATION_COLLECTIONS', 'MMK_COLLECTION'],
  ]) {
    it(`leads from ${typed} to ${meant}`, async (t) => {
      const env = { [typed]: 'x' }
      const { warnings } = await resolveConfig({ cwd: await folder(t, {}), env, argument: GIVEN })
      assert.deepEqual(warnings, [`Unknown environment variable ${typed} — did you mean ${meant}?`])
    })
  }

  for (const [typed, meant] of [
    ['lockTTL', 'lockTTLSeconds'],
    ['lock_ttl_seconds', 'lockTTLSeconds'],
    ['changelogCollectionName', 'migrationsCollection'],
    ['collection', 'migrationsCollection'],
    ['databaseName', 'dbName'],
    ['db', 'dbName'],
    ['url', 'uri'],
    ['mongoUri', 'uri'],
    ['MMK_URI', 'uri'],
    ['dir', 'migrationsDir'],
    ['lockCollectionName', 'lockCollection'],
  ]) {
    it(`leads from ${typed} to ${meant}`, async (t) => {
      const { context } = await refused({
        cwd: await folder(t, {}),
        argument: { ...GIVEN, [typed]: 1 },
      })
      assert.equal(context.issues[0].problem, `is unknown: did you mean "${meant}"?`)
    })
  }

  it('leads to the file where the option has no variable, and nowhere from another word', async (t) => {
    const env = { MMK_FILE_EXTENSIONS: '', MMK_ENV: '', MMK_BIN: '', MMK_COLOUR: '' }
    const { warnings } = await resolveConfig({ cwd: await folder(t, {}), env, argument: GIVEN })
    assert.deepEqual(warnings, [
      'Unknown environment variable MMK_FILE_EXTENSIONS — there is none for "fileExtensions": set it in the configuration file',
      'Unknown environment variable MMK_ENV',
      'Unknown environment variable MMK_BIN',
      'Unknown environment variable MMK_COLOUR',
    ])
  })
})

describe('a number or a name that only a server would refuse', () => {
  for (const [key, most] of Object.entries({
    lockTTLSeconds: 86_400,
    lockWaitTimeoutMs: 2 ** 31 - 1,
    transactionRetryTimeoutMs: 2 ** 31 - 1,
  })) {
    it(`is refused as ${key}: more than ${most}`, async (t) => {
      const cwd = await folder(t, {})
      const { config } = await resolveConfig({ cwd, env: {}, argument: { ...GIVEN, [key]: most } })
      assert.equal(config[/** @type {keyof typeof config} */ (key)], most)
      const { context } = await refused({ cwd, argument: { ...GIVEN, [key]: most + 1 } })
      assert.equal(context.issues.length, 1)
      assert.match(context.issues[0].problem, new RegExp(`whole number of .*, from . to ${most}$`))
    })
  }

  it('is refused as a collection that the changelog and the lock would share, with both keys', async (t) => {
    const cwd = await folder(t, {})
    for (const [env, key, other] of /** @type {const} */ ([
      [{ MMK_COLLECTION: '_mmk_locks' }, 'migrationsCollection', 'lockCollection'],
      [{ MMK_LOCK_COLLECTION: '_mmk_migrations' }, 'lockCollection', 'migrationsCollection'],
      [
        { MMK_COLLECTION: 'mine', MMK_LOCK_COLLECTION: 'mine' },
        'lockCollection',
        'migrationsCollection',
      ],
    ])) {
      const { context } = await refused({ cwd, env, argument: GIVEN })
      assert.equal(context.issues.length, 1)
      const [issue] = context.issues
      assert.deepEqual([issue.key, issue.source], [key, `the environment variable ${envOf(key)}`])
      assert.ok(issue.problem.includes(`"${other}"`), issue.problem)
    }
  })
})

/** @param {string} key */
const envOf = (key) => (key === 'lockCollection' ? 'MMK_LOCK_COLLECTION' : 'MMK_COLLECTION')

describe('a suggestion', () => {
  it('finds slips of the finger and of the case, and nothing far-fetched', () => {
    const known = ['lockTTLSeconds', 'strict', 'uri']
    assert.equal(suggest('lockTtlSecond', known), 'lockTTLSeconds')
    assert.equal(suggest('srtict', known), 'strict')
    assert.equal(suggest('completelyElse', known), null)
    assert.equal(suggest('x'.repeat(1e6), known), null)
  })
})
