/**
 * What a start loads: time can't be asserted, files can. Each costs about as much as any other.
 */
import assert from 'node:assert/strict'
import { relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { root } from '../../scripts/process.js'
import { counting } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

/** Names every ES module as it is loaded, and at the end every CommonJS one. */
const hooks = `
import { writeSync } from 'node:fs'
export async function load(url, context, next) {
  writeSync(2, 'loaded ' + url + '\\n')
  return next(url, context)
}`
const watch = `
import { writeSync } from 'node:fs'
import module, { register } from 'node:module'
import { pathToFileURL } from 'node:url'
register(${JSON.stringify(inline(hooks))})
process.on('exit', () => {
  for (const path of Object.keys(module._cache)) writeSync(2, 'loaded ' + pathToFileURL(path) + '\\n')
})`
const env = { NODE_OPTIONS: `--no-warnings --import=${inline(watch)}` }

/** @param {string} source */
function inline(source) {
  return `data:text/javascript,${encodeURIComponent(source)}`
}

/**
 * @param {import('../helpers/child.js').Child} child
 * @returns {Promise<string[]>} paths from our root
 */
async function loadedBy({ ended }) {
  const { code, stdout, stderr } = await ended
  assert.equal(code, 0, stdout + stderr)
  const urls = [...stderr.matchAll(/^loaded (file:.*)$/gm)].map(([, url = '']) => url)
  return urls.map((url) => relative(root, fileURLToPath(url)).replaceAll('\\', '/'))
}

const verbs = /^lib\/cli\/commands\//
const bodies = /^lib\/(host|body|driver|transaction|modules)\.js$/
const driver = /^node_modules\/mongodb\//
const failures = /^lib\/(failure|explain)\.js$/

/** @param {string[]} loaded @param {RegExp} kind */
const ofKind = (loaded, kind) => loaded.filter((path) => kind.test(path))

test('the version and the help load the parser and its words, and nothing that works', async (t) => {
  const { mmk } = await project(t)
  for (const args of [['--version'], ['--help'], ['up', '--help'], ['help', 'up']]) {
    const loaded = await loadedBy(mmk(args, { env }))
    assert.deepEqual(ofKind(loaded, /^lib\//).sort(), [
      'lib/cli/commander.js',
      'lib/cli/form.js',
      'lib/cli/main.js',
      'lib/cli/output.js',
      'lib/cli/program.js',
      'lib/cli/verbs.js',
      'lib/colors.js',
    ])
  }
})

test('a verb is loaded without the others', async (t) => {
  const database = await freshDatabase(t)
  const { mmk } = await project(t, {}, database)
  const loaded = await loadedBy(mmk(['--db', database.name, 'status'], { env }))
  assert.deepEqual(ofKind(loaded, verbs), ['lib/cli/commands/status.js'])
  assert.deepEqual([...ofKind(loaded, bodies), ...ofKind(loaded, driver)], [])
})

test('an app that boots with nothing to do loads no driver, and nothing that runs bodies', async (t) => {
  const database = await freshDatabase(t)
  const { mmk, write, node } = await project(t, { '1-one.js': counting('one') }, database)
  const applying = await loadedBy(mmk(['up'], { env }))
  assert.notDeepEqual(ofKind(applying, bodies), [])
  assert.notDeepEqual(ofKind(applying, driver), [])

  await write(
    'boot.js',
    `import { runMigrations } from 'mongo-migrate-kit'\nawait runMigrations({ logger: null })`,
  )
  for (const boot of [node('boot.js', { env }), mmk(['up'], { env })]) {
    const loaded = await loadedBy(boot)
    assert.ok(loaded.includes('lib/engine.js'))
    const needless = [bodies, driver, failures].flatMap((kind) => ofKind(loaded, kind))
    assert.deepEqual(needless, [])
  }
})
