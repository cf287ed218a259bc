import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { project } from '../helpers/project.js'

/** @param {string} stdout @param {string} key */
const settingOf = (stdout, key) =>
  JSON.parse(stdout).settings.find((/** @type {{ key: string }} */ setting) => setting.key === key)

test('config shows each value with where it came from: flag, environment, .env, file, URI, default', async (t) => {
  const app = await project(t, {})
  await app.write('mmk.config.mjs', "export default { uri: 'mongodb://h/shop', strict: true }")
  await app.write('.env', 'MMK_NAMESPACE=billing\n')
  const env = { MMK_LOCK_TTL: '30' }
  const { code, stdout, stderr } = await app.mmk(['config', '--json', '--dir', 'm'], { env }).ended

  assert.equal(code, 0, stdout + stderr)
  const shown = (/** @type {string} */ key) => {
    const { shown, source, from } = settingOf(stdout, key)
    return [shown, source, from]
  }
  assert.deepEqual(shown('migrationsDir'), [JSON.stringify(join(app.folder, 'm')), 'flag', '--dir'])
  assert.deepEqual(shown('lockTTLSeconds'), ['30', 'env', 'the environment variable MMK_LOCK_TTL'])
  assert.deepEqual(shown('namespace'), ['"billing"', 'env', 'MMK_NAMESPACE in .env'])
  assert.deepEqual(shown('strict'), ['true', 'file', 'mmk.config.mjs'])
  assert.deepEqual(shown('dbName'), ['"shop"', 'uri', 'the path of the URI'])
  assert.deepEqual(shown('outOfOrder'), ['"warn"', 'default', 'default'])
  assert.deepEqual(shown('service'), [null, 'default', 'not set'])
  assert.equal(JSON.parse(stdout).configFile, join(app.folder, 'mmk.config.mjs'))
})

test('config shows no secret, and of an object only its keys', async (t) => {
  const app = await project(t, {})
  const config = {
    uri: 'mongodb://asha:s3cret@h/shop?authSource=admin',
    mongoClientOptions: { auth: { username: 'asha', password: 's3cret' } },
  }
  await app.write('mmk.config.json', JSON.stringify(config))
  for (const flags of [[], ['--json']]) {
    const { code, stdout, stderr } = await app.mmk(['config', ...flags]).ended
    assert.equal(code, 0, stdout + stderr)
    assert.doesNotMatch(stdout + stderr, /s3cret/)
    assert.match(stdout, /an object: auth/)
  }
})

test('config reports all problems of a configuration at once and exits 2', async (t) => {
  const app = await project(t, {})
  await app.write('mmk.config.json', JSON.stringify({ strickt: true, outOfOrder: 'maybe' }))
  const { code, stdout, stderr } = await app.mmk(['config']).ended
  assert.equal(code, 2, stdout)
  assert.match(stderr, /2 problems found/)
  assert.match(stderr, /did you mean "strict"/)
  assert.match(stderr, /outOfOrder must be one of/)
})
