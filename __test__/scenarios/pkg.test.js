/**
 * The package as npm lays it out, with and without the package of this platform beside it.
 */
import assert from 'node:assert/strict'
import { copyFile, cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../../scripts/process.js'
import { start } from '../helpers/child.js'
import { folder } from '../unit/folder.js'

/**
 * @param {import('node:test').TestContext} t
 * @param {{ platform: boolean }} options is the platform's package installed?
 */
async function installed(t, { platform }) {
  const app = await folder(t, { 'package.json': '{ "name": "app" }', 'migrations/x.txt': '' })
  const main = join(app, 'node_modules', 'mongo-migrate-kit')
  const { dependencies, name, napi } = JSON.parse(
    await readFile(join(root, 'package.json'), 'utf8'),
  )
  for (const part of ['bin', 'lib', 'package.json']) {
    const options = {
      recursive: true,
      filter: (/** @type {string} */ path) => !path.endsWith('.node'),
    }
    await cp(join(root, part), join(main, part), options)
  }
  for (const each of Object.keys(dependencies)) {
    await symlink(join(root, 'node_modules', each), join(app, 'node_modules', each), 'junction')
  }
  const native = join(root, 'lib', 'native')
  const binary = (await readdir(native)).find((each) => each.endsWith('.node')) ?? ''
  const label = binary.split('.')[1] ?? ''
  const beside = join(app, 'node_modules', `${name}-${label}`)
  if (platform) {
    await mkdir(beside)
    await copyFile(join(native, binary), join(beside, `${napi.binaryName}.${label}.node`))
    const manifest = await readFile(join(root, 'npm', label, 'package.json'))
    await writeFile(join(beside, 'package.json'), manifest)
  }
  /** @param {string[]} args */
  const mmk = (...args) =>
    start(process.execPath, [join(main, 'bin', 'mmk.js'), ...args], { cwd: app }).ended
  return { mmk, missing: `${name}-${label}` }
}

/** Nobody listens there. */
const connection = ['--uri', 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100', '--db', 'app']

test('PKG-01: without the package of this platform every command says which is missing and what to do', async (t) => {
  const { mmk, missing } = await installed(t, { platform: false })

  const { code, stdout, stderr } = await mmk('up', ...connection)

  assert.equal(code, 2, stderr)
  assert.equal(stdout, '')
  assert.match(stderr, /✖ DEPENDENCY_MISSING: The compiled core of mongo-migrate-kit for \w+-\w+/)
  assert.ok(stderr.includes(missing), stderr)
  assert.match(stderr, /Hint: .*--omit=optional.*lock file/)
  const json = await mmk('status', '--json', ...connection)
  assert.equal(JSON.parse(json.stdout).error.code, 'DEPENDENCY_MISSING')
})

test('PKG-05: with it the core is loaded, and without it what needs no core still works', async (t) => {
  const full = await installed(t, { platform: true })
  const { stderr } = await full.mmk('status', ...connection)
  assert.match(stderr, /CONNECTION_FAILED/)

  const partial = await installed(t, { platform: false })
  for (const args of [['--version'], ['--help'], ['create', 'first']]) {
    const { code, stdout, stderr } = await partial.mmk(...args)
    assert.equal(code, 0, stdout + stderr)
  }
})
