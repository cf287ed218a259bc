/**
 * Scenarios SUM of docs/scenarios.md: files that are not what was applied.
 */
import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'

const two = { '1-one.js': counting('one'), '2-two.js': counting('two') }

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [migrations]
 */
async function applied(t, migrations = two) {
  const setting = await api(t, migrations)
  const { config, onEvent } = setting
  /** @param {Partial<import('mongo-migrate-kit').MmkConfig>} [more] */
  const kitOf = (more) => {
    const kit = new MigratorKit({ ...config, onEvent, ...more })
    t.after(() => kit.disconnect())
    return kit
  }
  const kit = kitOf()
  await kit.up()
  const warned = () => setting.eventsOf('warning').map(({ code, message }) => `${code} ${message}`)
  return { ...setting, kit, kitOf, warned }
}

test('SUM-01: an applied file that was edited is named by status and up, whether or not something is pending', async (t) => {
  const { app, kit, kitOf, warned } = await applied(t)
  await app.write('migrations/1-one.js', two['1-one.js'].replace('ups: 1', 'ups: 2'))

  const [one, other] = await kit.status()
  assert.deepEqual([one?.checksumOk, other?.checksumOk], [false, true])
  assert.ok(one?.appliedAt instanceof Date)
  await kit.up()
  await app.write('migrations/3-three.js', counting('three'))
  await assert.rejects(kitOf({ strict: true }).up(), {
    code: 'CHECKSUM_MISMATCH',
    message: /1-one/,
  })
  await kit.up()

  const said = warned().filter((line) => /^CHECKSUM_MISMATCH .*changed since.*1-one\.js/.test(line))
  assert.equal(said.length, 2, warned().join())
  const { code } = await app.mmk(['status', '--check']).ended
  assert.equal(code, 4)
})

test('SUM-02: line ends and a byte order mark make no difference, everything else does', async (t) => {
  const { app, kit } = await applied(t)
  const source = two['1-one.js']
  const ok = async (/** @type {string} */ text) => {
    await app.write('migrations/1-one.js', text)
    return (await kit.status())[0]?.checksumOk
  }

  assert.equal(await ok(source.replaceAll('\n', '\r\n')), true)
  assert.equal(await ok(`\ufeff${source}`), true)
  assert.equal(await ok(`\ufeff${source.replaceAll('\n', '\r\n')}`), true)
  assert.equal(await ok(source.replace(/\n$/, '')), false)
  assert.equal(await ok(source.replace('ups', 'upz')), false)
})

test('SUM-03: a file in UTF-16 is refused by name and encoding before anything ran', async (t) => {
  const { app, kit } = await applied(t)
  await app.write('migrations/3-marked.js', `\ufeff${counting('marked')}`)
  assert.deepEqual((await kit.up()).length, 1, 'UTF-8 with a byte order mark')

  await app.write('migrations/4-four.js', counting('four'))
  for (const extension of ['js', 'ts', 'cjs']) {
    const path = join(app.migrationsDir, `5-wide.${extension}`)
    await writeFile(path, `\ufeff${counting('wide')}`, 'utf16le')
    await assert.rejects(kit.up(), {
      code: 'MIGRATION_LOAD_FAILED',
      message: new RegExp(`Could not load 5-wide\\.${extension}: it is UTF-16 text`),
      hint: /UTF-8/,
    })
    await rm(path)
  }
  assert.equal((await kit.list('pending')).length, 1)
})

test('SUM-04: two files with the same bytes are two migrations', async (t) => {
  const same = counting('same')
  const { kit, database } = await applied(t, { '1-one.js': same, '2-two.js': same })

  assert.deepEqual(await runsOf(database, 'same'), { ups: 2, downs: 0 })
  assert.deepEqual(await kit.up(), [])
})

test('SUM-04: a renamed file is said to be one before it runs under its new name', async (t) => {
  const { app, kit, kitOf, warned } = await applied(t)
  await rm(join(app.migrationsDir, '1-one.js'))
  await app.write('migrations/3-one.js', two['1-one.js'])

  await assert.rejects(kitOf({ strict: true }).up(), { code: 'MIGRATION_FILE_NOT_FOUND' })
  assert.deepEqual(await kit.dryRun('up').then((rows) => rows.map(({ file }) => file)), [
    '3-one.js',
  ])

  assert.ok(warned().some((line) => /^FILE_MISSING .*1-one\.js/.test(line)))
  assert.ok(
    warned().some((line) =>
      /^RENAMED "1-one\.js" is missing.*"3-one\.js" has its content/.test(line),
    ),
    warned().join('\n'),
  )
  await kit.mark('3-one.js', 'applied')
  assert.deepEqual(await kit.up(), [])
})

test('SUM-05: applied files that are gone are shown as missing, and their entries stay', async (t) => {
  const { app, kit, database } = await applied(t)
  const entries = await database.entries()
  for (const name of Object.keys(two)) await rm(join(app.migrationsDir, name))
  const shown = async () => (await kit.status()).map(({ file, missing }) => `${file} ${missing}`)
  assert.deepEqual(await shown(), ['1-one.js true', '2-two.js true'])
  await assert.rejects(kit.down(), { code: 'MIGRATION_FILE_NOT_FOUND', message: /2-two\.js/ })

  await rm(app.migrationsDir, { recursive: true })
  assert.deepEqual(await shown(), ['1-one.js true', '2-two.js true'])
  const status = await app.mmk(['status', '--json']).ended
  assert.equal(status.code, 0, status.stderr)
  assert.equal(JSON.parse(status.stdout).length, 2)
  assert.deepEqual(await database.entries(), entries)
})
