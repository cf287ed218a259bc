/**
 * Connection strings against the drivers that will read them: what we accept, both take; what we
 * refuse, one of them does.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { MongoClient } from 'mongodb'
import { MongoClient as MongoClient6 } from 'mongodb-6'
import { coreConnection } from '../../lib/config/connection.js'
import { resolveConfig, toSettings } from '../../lib/config/index.js'
import { formatUri, parseUri } from '../../lib/config/uri.js'
import { URI_OPTIONS } from '../../lib/config/uri-options.js'
import { openCore } from '../../lib/core.js'
import { folder } from './folder.js'

/** @type {[uri: string, named: string][]} */
const table = readFileSync(new URL('uris.tsv', import.meta.url), 'utf8')
  .split('\n')
  .slice(1, -1)
  .map((line) => /** @type {[string, string]} */ (line.split('\t')))

/** The core's driver reads these, and then has no way to sign in with them. */
const UNUSABLE_AT_RUN_TIME = /ENVIRONMENT:(azure|gcp)|MONGODB-CR/

/** @param {string} uri */
function nodeTakes(uri) {
  return [MongoClient, MongoClient6].map((Client) => {
    try {
      return new Client(uri) !== null
    } catch {
      return false
    }
  })
}

/**
 * What the core's driver says of a connection string, with no patience to look for a server.
 * @param {string} uri
 * @returns {Promise<string | null>} `null`: it would connect
 */
async function coreRefuses(uri) {
  const parts = parseUri(uri)
  const impatient = typeof parts === 'string' ? uri : formatUri(withoutPatience(parts))
  const config = { uri: 'mongodb://h', dbName: 'app' }
  const { config: resolved } = await resolveConfig({ argument: config, cwd: '/', env: {} })
  const core = await openCore({ ...toSettings(resolved, {}), uri: impatient })
  const reply = await core.connect()
  await core.disconnect()
  assert.ok(!reply.ok, uri)
  return reply.error.code === 'CONFIG_INVALID' ? reply.error.message : null
}

/** @param {import('../../lib/config/uri.js').Parts} parts */
function withoutPatience(parts) {
  const name = 'serverSelectionTimeoutMS'
  const rest = parts.options.filter(([each, value]) => each !== name || value.startsWith('-'))
  return rest.length < parts.options.length || !rest.some(([each]) => each === name)
    ? { ...parts, options: [...rest, /** @type {[string, string]} */ ([name, '1'])] }
    : parts
}

/**
 * @param {string} uri
 * @param {string} cwd
 * @returns {Promise<string | null>} why it is refused, before anything is sent anywhere
 */
async function refusalOf(uri, cwd) {
  try {
    const { config } = await resolveConfig({ argument: { uri, dbName: 'app' }, cwd, env: {} })
    return await coreRefuses(coreConnection(config).uri)
  } catch (error) {
    const { code, context } = /** @type {any} */ (error)
    assert.equal(code, 'CONFIG_INVALID', String(error))
    return context.issues.map((/** @type {any} */ issue) => issue.problem).join('; ')
  }
}

describe('a connection string', () => {
  // Drivers warn of what is old-fashioned; there is plenty of it here.
  before(() => process.removeAllListeners('warning'))

  it('that is accepted is one for a Node driver and, translated, for the core', async (t) => {
    const cwd = await folder(t, {})
    const rows = table.filter(([, named]) => named === '')
    assert.ok(rows.length > 100)
    await Promise.all(
      rows.map(async ([uri]) => {
        assert.ok(nodeTakes(uri).includes(true), uri)
        assert.equal(await refusalOf(uri, cwd), null, uri)
      }),
    )
  })

  it('that is refused is refused by name, and one of the drivers could not have used it', async (t) => {
    const cwd = await folder(t, {})
    const rows = table.filter(([, named]) => named !== '')
    assert.ok(rows.length > 60)
    await Promise.all(
      rows.map(async ([uri, named]) => {
        const refusal = await refusalOf(uri, cwd)
        assert.ok(refusal?.includes(named), `${uri}: ${refusal}`)
        const why = nodeTakes(uri).includes(false) || UNUSABLE_AT_RUN_TIME.test(uri)
        assert.ok(why || (await coreRefuses(uri)) !== null, `${uri} is refused for no reason`)
      }),
    )
  })

  it('has a row for every option that a Node driver knows', () => {
    const require = createRequire(import.meta.url)
    const names = ['mongodb', 'mongodb-6'].flatMap((driver) =>
      Object.keys(require(`${driver}/lib/connection_string.js`).OPTIONS),
    )
    const missing = names.filter((name) => {
      if (URI_OPTIONS.has(name.toLowerCase()) || name.startsWith('__')) return false
      const { problems } = coreConnection({
        uri: 'mongodb://h',
        mongoClientOptions: { [name]: {} },
      })
      return problems.some(({ problem }) => problem.includes('unknown'))
    })
    assert.deepEqual(missing, [])
  })

  it('keeps what matters on its way to the core', () => {
    /** @type {[string, string][]} */
    const uris = [
      [
        'mongodb://a:p%40ss%3Aw%2Frd%25@h1:1,[::1]:2/',
        'mongodb://a:p%40ss%3Aw%2Frd%25@h1:1,[::1]:2/',
      ],
      ['mongodb://%2Ftmp%2Fmongodb-1.sock/', 'mongodb://%2Ftmp%2Fmongodb-1.sock/'],
      ['mongodb://a:b@h/my%20db', 'mongodb://a:b@h/?authSource=my%20db'],
      ['mongodb+srv://a:b@h/shop', 'mongodb+srv://a:b@h/shop'],
      ['mongodb://h/?compressors=none,zlib&&w=0', 'mongodb://h/?compressors=zlib'],
      ['mongodb://h?heartbeatFrequencyMS=100', 'mongodb://h/?heartbeatFrequencyMS=500'],
      [
        'mongodb://h/?proxyHost=p&proxyUsername=a+b&proxyPassword=c%2Bd',
        'mongodb://h/?proxyHost=p&proxyUsername=a%20b&proxyPassword=c%2Bd',
      ],
    ]
    for (const [uri, expected] of uris) {
      assert.deepEqual(coreConnection({ uri }), { uri: expected, apiVersion: null, problems: [] })
    }
  })
})

describe('mongoClientOptions', () => {
  it('reach the core, and win over the connection string', () => {
    const { uri, apiVersion, problems } = coreConnection({
      uri: 'mongodb://ann:one@h/shop?replicaSet=old&ReplicaSet=older&tls=false',
      mongoClientOptions: {
        auth: { username: 'bob', password: 'two/3' },
        replicaSet: 'rs0',
        tls: true,
        compressors: ['zlib', 'zstd'],
        serverSelectionTimeoutMS: 1500,
        authMechanismProperties: { ENVIRONMENT: 'k8s' },
        serverApi: { version: '1', strict: true },
        readPreference: 'secondary',
        monitorCommands: true,
        pkFactory: { createPk: () => 1 },
        appname: undefined,
      },
    })
    assert.deepEqual([problems, apiVersion], [[], '1'])
    assert.equal(
      uri,
      'mongodb://bob:two%2F3@h/shop?replicaSet=rs0&tls=true&compressors=zlib%2Czstd&serverSelectionTimeoutMS=1500&authMechanismProperties=ENVIRONMENT%3Ak8s',
    )
  })

  it('that can not cross to the core are refused by name, all at once', async (t) => {
    const cwd = await folder(t, {})
    const mongoClientOptions = {
      ca: Buffer.from('x'),
      checkServerIdentity: () => undefined,
      authMechanismProperties: { OIDC_CALLBACK: () => 'hunter2' },
      loadBalanced: true,
      serverApi: '2',
      replicaset: '',
      tlsCAFiles: '/x',
      rejectUnauthorized: false,
    }
    const argument = { uri: 'mongodb://h', dbName: 'app', mongoClientOptions }
    const error = await resolveConfig({
      argument: /** @type {any} */ (argument),
      cwd,
      env: {},
    }).then(
      () => assert.fail('they were accepted'),
      (reason) => reason,
    )
    for (const name of Object.keys(mongoClientOptions)) {
      const issues = error.context.issues.filter((/** @type {any} */ { problem }) =>
        problem.toLowerCase().includes(`"${name.toLowerCase()}"`),
      )
      assert.deepEqual(
        issues.map((/** @type {any} */ { key }) => key),
        ['mongoClientOptions'],
        name,
      )
    }
    assert.match(error.message, /did you mean "tlsCAFile"/)
    assert.ok(!error.message.includes('hunter2'))
  })

  it('concern the bodies alone where there is a lockUri', () => {
    const { uri, problems } = coreConnection({
      uri: 'mongodb://user%40REALM@h/?authMechanism=GSSAPI',
      lockUri: 'mongodb://lock:pw@h/?tls=true',
      mongoClientOptions: { ca: Buffer.from('x') },
    })
    assert.deepEqual([uri, problems], ['mongodb://lock:pw@h/?tls=true', []])
  })
})

describe('a file of a certificate', () => {
  it('is refused by option and form where one driver could not read it', async (t) => {
    const cwd = await folder(t, {})
    const path = join(cwd, 'key.pem')
    /** @type {[string, RegExp][]} */
    const forms = [
      [
        '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n',
        /"tlsCertificateKeyFile", .*old form.*key\.pem$/,
      ],
      ['\0binary', /"tlsCertificateKeyFile", .*no PEM text/],
    ]
    for (const [text, expected] of forms) {
      writeFileSync(path, text)
      const uri = `mongodb://h/?tls=true&tlsCertificateKeyFile=${encodeURIComponent(path)}`
      assert.match(coreConnection({ uri }).problems[0]?.problem ?? '', expected)
    }
  })
})
