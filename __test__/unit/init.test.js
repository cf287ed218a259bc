import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { initConfig } from '../../lib/init.js'

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
