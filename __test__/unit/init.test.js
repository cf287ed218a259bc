import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { initConfig, initProject } from '../../lib/init.js'

const run = promisify(execFile)

/** @type {string} */
let cwd

beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mmk-init-'))
})

afterEach(() => rm(cwd, { recursive: true }))

const awkward = {
  uri: `mongodb://u:it's-"\\$\{x}@h/db`,
  dbName: "o'db",
  migrationsDir: './mig rations',
}

/** Loads a config in a Node of its own and returns what it exports and what Node complained about. */
async function loadConfig() {
  const script = `
    import('./mmk.config.js').then(async ({ default: config }) => {
      const value = typeof config === 'function' ? await config() : config
      console.log(JSON.stringify(value))
    })`
  const env = { ...process.env, DATABASE_URI: 'mongodb://secret/db' }
  const { stdout, stderr } = await run(process.execPath, ['-e', script], { cwd, env })
  return { value: JSON.parse(stdout), stderr }
}

describe('the config that init writes', () => {
  for (const type of ['module', 'commonjs', undefined]) {
    it(`loads without a warning in a project of type ${type}`, async () => {
      await writeFile(join(cwd, 'package.json'), JSON.stringify({ type }))
      const path = await initConfig({ cwd, ...awkward })
      assert.equal(basename(path), 'mmk.config.js')
      assert.deepEqual(await loadConfig(), { value: awkward, stderr: '' })
    })

    it(`can fetch its URI from a secret store in a project of type ${type}`, async () => {
      await writeFile(join(cwd, 'package.json'), JSON.stringify({ type }))
      await initConfig({ cwd, ...awkward, secretProvider: true })
      const value = { ...awkward, uri: 'mongodb://secret/db' }
      assert.deepEqual(await loadConfig(), { value, stderr: '' })
    })
  }

  it('can be JSON', async () => {
    const path = await initConfig({ cwd, format: 'json', ...awkward })
    assert.equal(basename(path), 'mmk.config.json')
    assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), awkward)
  })

  it('can be typed', async () => {
    const path = await initConfig({ cwd, format: 'ts' })
    assert.equal(basename(path), 'mmk.config.ts')
    assert.match(await readFile(path, 'utf8'), /const config: Partial<MmkConfig> = \{/)
  })

  it('has migrations created in TypeScript if it is written in TypeScript itself', async () => {
    for (const secretProvider of [false, true]) {
      const ts = await initConfig({ cwd, format: 'ts', force: true, secretProvider })
      assert.match(await readFile(ts, 'utf8'), /^ +createExtension: 'ts'$/m)
      const js = await initConfig({ cwd, format: 'js', force: true, secretProvider })
      assert.doesNotMatch(await readFile(js, 'utf8'), /createExtension/)
    }
  })

  it('comes with the migrations directory', async () => {
    await initConfig({ cwd, migrationsDir: 'db/migrations' })
    await access(join(cwd, 'db/migrations'))
  })
})

describe('init refuses', () => {
  it('to write beside a config of any format', async () => {
    await writeFile(join(cwd, 'mmk.config.cjs'), '')
    await assert.rejects(initConfig({ cwd }), {
      code: 'CONFIG_FILE_EXISTS',
      context: { path: join(cwd, 'mmk.config.cjs') },
    })
    assert.deepEqual(await readdir(cwd), ['mmk.config.cjs'])
  })

  it('no longer, once it is forced', async () => {
    await initConfig({ cwd, dbName: 'old' })
    const path = await initConfig({ cwd, dbName: 'new', force: true })
    assert.match(await readFile(path, 'utf8'), /dbName: 'new'/)
  })

  it('a secret provider in JSON', async () => {
    await assert.rejects(initConfig({ cwd, format: 'json', secretProvider: true }), {
      code: 'INVALID_ARGUMENT',
    })
    assert.deepEqual(await readdir(cwd), [])
  })
})

describe('what init finds out by itself', () => {
  it('writes a TypeScript config where there is a tsconfig.json, unless told otherwise', async () => {
    await writeFile(join(cwd, 'tsconfig.json'), '{}')
    assert.equal(basename(await initConfig({ cwd })), 'mmk.config.ts')
    assert.equal(basename(await initConfig({ cwd, format: 'js', force: true })), 'mmk.config.js')
  })

  for (const [type, head] of /** @type {const} */ ([
    ['commonjs', 'module.exports ='],
    ['module', 'export default'],
  ])) {
    it(`takes over the settings of migrate-mongo in a project of type ${type}`, async () => {
      await writeFile(join(cwd, 'package.json'), JSON.stringify({ type }))
      const text = `const config = {
        mongodb: { url: 'mongodb://db.internal:27017', databaseName: 'shop' },
        migrationsDir: 'database/migrations',
        changelogCollectionName: 'history',
      }
      ${head} config`
      await writeFile(join(cwd, 'migrate-mongo-config.js'), text)
      const { adopted } = await initProject({ cwd })

      const { value } = await loadConfig()
      assert.deepEqual(value, {
        uri: 'mongodb://db.internal:27017',
        dbName: 'shop',
        migrationsDir: 'database/migrations',
      })
      assert.equal(adopted?.changelog, 'history')
      await access(join(cwd, 'database', 'migrations'))
    })
  }

  it('does not write down a URI that migrate-mongo had from the environment', async () => {
    process.env.INIT_TEST_URI = 'mongodb://asha:s3cret@db.internal'
    const text = `module.exports = { mongodb: { url: process.env.INIT_TEST_URI, databaseName: 'shop' } }`
    await writeFile(join(cwd, 'migrate-mongo-config.js'), text)
    const { path, adopted } = await initProject({ cwd })
    delete process.env.INIT_TEST_URI

    assert.doesNotMatch(await readFile(path, 'utf8'), /s3cret|db\.internal/)
    // Nor any other: whoever forgets to set it would migrate the database of the example.
    assert.deepEqual((await loadConfig()).value, { dbName: 'shop', migrationsDir: './migrations' })
    assert.equal(adopted?.uri, null)
    assert.match(await readFile(path, 'utf8'), /dbName: 'shop'/)
  })

  for (const [what, mongodb, unset] of /** @type {const} */ ([
    ['both', '{ url: process.env.NO_SUCH_URI, databaseName: process.env.NO_SUCH }', 'uri dbName'],
    ['the name', "{ url: 'mongodb://h', databaseName: process.env.NO_SUCH }", 'dbName'],
    ['nothing, with the name in the URI', "{ url: 'mongodb://h/shop' }", ''],
  ])) {
    it(`tells that migrate-mongo's configuration lacks ${what}`, async () => {
      await writeFile(
        join(cwd, 'migrate-mongo-config.js'),
        `module.exports = { mongodb: ${mongodb} }`,
      )
      const found = await initProject({ cwd })
      assert.equal(found.unset.join(' '), unset)
      const given = await initProject({ cwd, force: true, uri: 'mongodb://h', dbName: 'shop' })
      assert.deepEqual(given.unset, [], 'what was given is written')
    })
  }

  for (const [what, uri, holds] of /** @type {const} */ ([
    ['a password', 'mongodb://bob:secret@h/shop', true],
    ['a password that is not escaped', 'mongodb://bob:se/cr@t@h/shop', true],
    ['a password for a key', 'mongodb://h/shop?tlsCertificateKeyFilePassword=secret', true],
    ['a user alone', 'mongodb://bob@h/shop', false],
    ['nobody', 'mongodb://h:27017/shop', false],
  ])) {
    it(`tells whether the file holds a password: the URI has ${what}`, async () => {
      assert.equal((await initProject({ cwd, uri })).holdsSecret, holds)
      const provided = await initProject({ cwd, uri, secretProvider: true, force: true })
      assert.equal(provided.holdsSecret, false)
    })
  }

  for (const [what, text] of [
    ['rejects', "export default Promise.reject(new Error('no vault here'))"],
    [
      'throws when it is read',
      "export default { get mongodb() { throw new Error('no vault here') } }",
    ],
    ['is a function', "export default () => ({ mongodb: { databaseName: 'shop' } })"],
  ]) {
    it(`writes the defaults beside a configuration of migrate-mongo that ${what}`, async () => {
      await writeFile(join(cwd, 'package.json'), JSON.stringify({ type: 'module' }))
      await writeFile(join(cwd, 'migrate-mongo-config.js'), text)
      const { path, adopted } = await initProject({ cwd })

      assert.equal(adopted, null)
      assert.match(await readFile(path, 'utf8'), /dbName: 'my_app'/)
    })
  }
})
