/**
 * The packed package in an empty folder, installed and used as its readers will: nothing of this
 * working tree is in reach.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ADDON_BUDGET, addonFile } from '../../bench/measure/size.js'
import { pack } from '../../scripts/pack.js'
import { root } from '../../scripts/process.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { start } from '../helpers/child.js'
import { freshDatabase, holdLock } from '../helpers/database.js'

const esm = `
import assert from 'node:assert/strict'
import * as kit from 'mongo-migrate-kit'
import { runMigrations } from 'mongo-migrate-kit'
assert.equal(runMigrations, kit.runMigrations)
assert.equal((await import('mongo-migrate-kit')).runMigrations, runMigrations)
for (const name of ['runMigrations', 'pendingMigrations', 'MigratorKit', 'defineMigration', 'defineConfig', 'MmkError']) {
  assert.equal(typeof kit[name], 'function', name)
}
`

const commonJs = `
const assert = require('node:assert/strict')
const { runMigrations, LockAlreadyHeldError, MmkError } = require('mongo-migrate-kit')
assert.equal(typeof runMigrations, 'function')
assert.ok(new LockAlreadyHeldError('held') instanceof MmkError)
import('mongo-migrate-kit').then((kit) => assert.equal(kit.runMigrations, runMigrations))
`

const typed = `
import { defineConfig, defineMigration, LockAlreadyHeldError, MigratorKit, runMigrations } from 'mongo-migrate-kit'
import type { MigrationContext, RunResult, StatusRow } from 'mongo-migrate-kit'

export const config = defineConfig({ uri: 'mongodb://localhost', dbName: 'app', lockTTLSeconds: 30 })
export const up = async ({ db, client, session, signal }: MigrationContext): Promise<void> => {
  signal.throwIfAborted()
  await db.collection<{ name: string }>('users').updateOne({ name: 'a' }, { $set: { name: 'b' } }, { session })
  await client.db('other').command({ ping: 1 })
}
export const migration = defineMigration({ up, down: async (db) => void (await db.collection('users').drop()) })

export async function boot(): Promise<string[]> {
  try {
    const { applied } = await runMigrations({ onLockHeld: 'wait', lockWaitTimeoutMs: 60_000 })
    return applied.map((result: RunResult) => result.file)
  } catch (error) {
    if (error instanceof LockAlreadyHeldError) return [error.code]
    throw error
  }
}
export const rows = (): Promise<StatusRow[]> => new MigratorKit({}).status()
// @ts-expect-error there is no such way to meet a held lock
export const wrong = () => runMigrations({ onLockHeld: 'ignore' })
`

const tsconfig = {
  compilerOptions: {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    noEmit: true,
    types: ['node'],
  },
  files: ['typed.mts', 'typed.cts'],
}

let folder = ''

before(async () => {
  const tarballs = await pack()
  folder = await realpath(await mkdtemp(join(tmpdir(), 'mmk-packed-')))
  await npm('init', '-y')
  const packages = [tarballs.main, tarballs.platform, 'mongodb@6', '@types/node@20']
  await npm('install', '--prefer-offline', ...packages)
})

after(() => rm(folder, { recursive: true, force: true }))

/** @param {string[]} args */
async function npm(...args) {
  const options = { cwd: folder, timeoutMs: 180_000 }
  const { code, stdout, stderr } = await start('npm', [...args, '--no-audit', '--no-fund'], options)
    .ended
  assert.equal(code, 0, stdout + stderr)
}

/**
 * @param {string} name
 * @param {string} text
 */
const write = (name, text) => writeFile(join(folder, name), text)

/** @param {string[]} args of node */
async function node(...args) {
  const { code, stdout, stderr } = await start(process.execPath, args, { cwd: folder }).ended
  assert.equal(code, 0, stdout + stderr)
}

/** @param {string} name @returns {Promise<Record<string, any>>} */
const installed = async (name) =>
  JSON.parse(await readFile(join(folder, 'node_modules', name, 'package.json'), 'utf8'))

test('the addon that is packed keeps to its budget', async () => {
  const { length } = await addonFile()
  assert.ok(length <= ADDON_BUDGET, `${length} bytes: what makes it larger must be worth it`)
})

test('installing runs no script and compiles nothing', async () => {
  const names = ['mongo-migrate-kit', ...Object.keys(await platformPackages())]
  for (const name of names) {
    assert.equal((await installed(name)).scripts, undefined, name)
    const files = await readdir(join(folder, 'node_modules', name), { recursive: true })
    assert.deepEqual(
      files.filter((file) => /binding\.gyp$|\.rs$|Cargo\./.test(file)),
      [],
      name,
    )
  }
})

test('the explanation of each error and the schema of the output are where they are said to be', async () => {
  const errors = 'node_modules/mongo-migrate-kit/docs/errors.md'
  assert.match(await readFile(join(folder, errors), 'utf8'), /^## LOCK_LOST$/m)
  await write(
    'documents.mjs',
    `import { LockLostError } from 'mongo-migrate-kit'
    import schema from 'mongo-migrate-kit/schema/output-2.json' with { type: 'json' }
    if (new LockLostError('lost').docsUrl !== '${errors}#lock_lost') throw new Error('docsUrl')
    if (schema.properties.schemaVersion.const !== 2) throw new Error('schema')`,
  )
  await node('documents.mjs')
})

test('every document that the README sends its reader to is there', async () => {
  const own = join(folder, 'node_modules', 'mongo-migrate-kit')
  const readme = await readFile(join(own, 'README.md'), 'utf8')
  const documents = [...readme.matchAll(/\]\((docs\/[^)#]+)/g)].map(([, path = '']) => path)
  assert.ok(documents.length > 0)
  for (const path of documents) await readFile(join(own, path))
})

test('the binary is in the package of this platform, and only there', async () => {
  const [[name, version] = ['', '']] = Object.entries(await platformPackages())
  const own = await installed(name)
  assert.equal(own.version, version)
  assert.deepEqual([own.os, own.cpu], [[process.platform], [process.arch]])
  const files = await readdir(join(folder, 'node_modules', 'mongo-migrate-kit'), {
    recursive: true,
  })
  assert.deepEqual(
    files.filter((file) => file.endsWith('.node')),
    [],
  )
})

/** @returns {Promise<Record<string, string>>} */
async function platformPackages() {
  return (await installed('mongo-migrate-kit')).optionalDependencies
}

test('MOD-03: an ES module can import it by name, as a namespace and when it runs', async () => {
  await write('app.mjs', esm)
  await node('app.mjs')
})

test('MOD-03: a CommonJS module can require it, and import it when it runs', async () => {
  await write('app.cjs', commonJs)
  await node('app.cjs')
})

test('MOD-03: tsc --strict accepts a sample as an ES module, as CommonJS and for a bundler', async () => {
  await write('typed.mts', typed)
  await write('typed.cts', typed)
  await write('tsconfig.json', JSON.stringify(tsconfig))
  const { compilerOptions } = tsconfig
  const bundled = { ...compilerOptions, module: 'esnext', moduleResolution: 'bundler' }
  const forBundler = { compilerOptions: bundled, files: ['typed.mts'] }
  await write('tsconfig.bundler.json', JSON.stringify(forBundler))
  for (const config of ['tsconfig.json', 'tsconfig.bundler.json']) {
    await node(join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', config)
  }
})

test('PKG-05: npx mmk does init, create, up, status, down and unlock', async (t) => {
  const database = await freshDatabase(t)
  /** @param {string[]} args */
  const mmk = async (...args) => {
    const end = await start('npx', ['--no-install', 'mmk', ...args], { cwd: folder }).ended
    assert.equal(end.code, 0, `mmk ${args.join(' ')}: ${end.stdout}${end.stderr}`)
    return end.stdout
  }

  await mmk('init', '--js', '--uri', database.uri, '--db', database.name)
  await mmk('create', 'add users')
  const [file] = await readdir(join(folder, 'migrations'))
  assert.match(file ?? '', /-add-users\.js$/)
  await write(`migrations/${file}`, commonJsOf(counting('users')))

  assert.match(await mmk('up'), /✔ Applied .*add-users/)
  assert.match(await mmk('status'), /add-users.*applied/)
  assert.match(await mmk('down'), /↩ Reverted .*add-users/)
  assert.deepEqual(await runsOf(database, 'users'), { ups: 1, downs: 1 })
  await holdLock(database)
  assert.match(await mmk('unlock', '--yes'), /✔ Lock released/)
})

/** `npm init` makes a CommonJS package. @param {string} source */
const commonJsOf = (source) =>
  source.replaceAll(/export async function (\w+)/g, 'exports.$1 = async function')
