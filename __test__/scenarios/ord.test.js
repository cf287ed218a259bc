/**
 * Scenarios ORD of docs/scenarios.md: which files are migrations, and in which order they run.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting } from '../helpers/bodies.js'

/** @import { Api } from '../helpers/api.js' */

/** @param {{ file: string }[]} rows */
const files = (rows) => rows.map(({ file }) => file)

/** @param {readonly string[]} names */
const migrations = (names) => Object.fromEntries(names.map((name) => [name, counting(name)]))

/**
 * @param {import('node:test').TestContext} t
 * @param {Api} setting
 * @param {Partial<import('mongo-migrate-kit').MmkConfig>} [more]
 */
function kitOf(t, { config, onEvent }, more) {
  const kit = new MigratorKit({ ...config, onEvent, ...more })
  t.after(() => kit.disconnect())
  return kit
}

/** @param {Api} setting the entries' names, in the order in which they were applied */
async function applied({ database }) {
  const changelog = database.db.collection('_mmk_migrations')
  const entries = await changelog.find().sort({ startedAt: 1, name: 1 }).toArray()
  return entries.map(({ name }) => name)
}

test('ORD-01: whatever the order in which files were made, they apply by name, as was said before', async (t) => {
  const names = ['04-d.js', '01-a.ts', '06-f.js', '02-b.mjs', '05-e.js', '03-c.cjs.js']
  const setting = await api(t, migrations(names))
  const kit = kitOf(t, setting)
  const sorted = [...names].sort()

  const [status, rehearsed] = [await kit.status(), await kit.dryRun('up')]
  const results = await kit.up()

  for (const rows of [status, rehearsed, results]) assert.deepEqual(files(rows), sorted)
  assert.deepEqual(await applied(setting), sorted)
})

test('ORD-02: stamps of several lengths have one order, and a mix that is no order of numbers is warned of', async (t) => {
  const tidy = ['0001-a.js', '20240101-b.js', '202401020000-c.js', '20240103000000-d.js']
  const setting = await api(t, migrations(tidy))
  const kit = kitOf(t, setting)
  const warned = () => setting.eventsOf('warning').filter(({ code }) => code === 'NUMBER_ORDER')
  assert.deepEqual(files(await kit.up()), tidy)
  assert.deepEqual(warned(), [])

  await setting.app.write('migrations/20250101-e.js', counting('e'))
  await setting.app.write('migrations/20241231000000123-f.js', counting('f'))
  const results = await kit.up()

  assert.deepEqual(files(results), ['20241231000000123-f.js', '20250101-e.js'])
  const [warning] = warned()
  assert.match(
    warning?.message ?? '',
    /"20241231000000123-f\.js" runs before "20250101-e\.js".*as text/,
  )
})

test('ORD-03: in a folder that holds everything, the migrations are found and nothing else', async (t) => {
  const real = migrations(['1-one.js', '2-two.ts'])
  const { app } = await api(t, {
    ...real,
    ...Object.fromEntries(
      ['x.d.ts', 'x.js.map', '.DS_Store', 'y.test.ts', 'y.spec.js', 'z.js~', '.#1-one.js'].map(
        (name) => [name, 'not a migration'],
      ),
    ),
    'README.md': '# Notes',
    'package.json': '{ "type": "module" }',
    'mmk.config.js': "export default { migrationsDir: '.' }",
  })

  const end = await app.mmk(['up', '--json'], { cwd: app.migrationsDir }).ended

  assert.equal(end.code, 0, end.stdout + end.stderr)
  assert.deepEqual(files(JSON.parse(end.stdout)), ['1-one.js', '2-two.ts'])
})

test('ORD-03: a stray script beside them is named before anything ran', async (t) => {
  const setting = await api(t, { ...migrations(['1-one.js']), 'seed.js': 'export const x = 1' })

  await assert.rejects(kitOf(t, setting).up(), {
    code: 'MIGRATION_INVALID_EXPORT',
    message: /seed\.js is not a usable migration: it exports no function `up`/,
  })
  assert.deepEqual(await applied(setting), [])
})

test('ORD-04: unusual names are migrations like others, and none disappears', async (t) => {
  const long = `${'l'.repeat(197)}.js`
  const names = ['20250101 add users.js', '20250102-x.js.js', long, 'no-number.js', 'Ünï.ts']
  const setting = await api(t, migrations(names))
  const kit = kitOf(t, setting)

  assert.deepEqual(files(await kit.up(undefined, { step: true })), [...names].sort())
  const down = await setting.app.mmk(['down', '--to', '20250101 add users.js', '--json']).ended
  assert.equal(down.code, 0, down.stdout + down.stderr)
  assert.deepEqual(files(JSON.parse(down.stdout)), [...names].sort().slice(1).reverse())
  assert.deepEqual(files(await kit.list('applied')), ['20250101 add users.js'])
})

test('ORD-04: a name that is no text is an error, not a file that nobody sees', async (t) => {
  const setting = await api(t, migrations(['1-one.js']))
  const latin1 = Buffer.from(`${setting.app.migrationsDir}/2-\xfc.js`, 'latin1')
  await writeFile(latin1, counting('two'))

  await assert.rejects(kitOf(t, setting).up(), {
    code: 'MIGRATION_LOAD_FAILED',
    message: /2-.\.js can't be read: its name is no valid text/,
  })
})

test('ORD-05: a migration is its bare name, whatever the folder is called and however it is reached', async (t) => {
  const setting = await api(t, {})
  const { app } = setting
  const odd = 'my_app 2024#1 %20 ünï/2019_old/migrations'
  await app.write(`${odd}/1_one.js`, counting('one'))
  await app.write(`${odd}/2_two.ts`, counting('two'))
  const migrationsDir = join(app.folder, odd)
  await symlink(migrationsDir, join(app.folder, 'linked'), 'junction')
  await mkdir(join(app.folder, 'elsewhere'))
  const names = ['1_one.js', '2_two.ts']

  const first = await app.mmk(['up', '1_one.js', '--json', '--dir', odd]).ended
  assert.equal(first.code, 0, first.stdout + first.stderr)
  assert.deepEqual(files(await kitOf(t, setting, { migrationsDir }).up()), ['2_two.ts'])

  const args = ['up', '--json', '--dir', '../linked']
  const again = await app.mmk(args, { cwd: join(app.folder, 'elsewhere') }).ended
  assert.deepEqual([again.code, JSON.parse(again.stdout)], [0, []], again.stderr)
  const linked = kitOf(t, setting, { migrationsDir: join(app.folder, 'linked') })
  assert.deepEqual(files(await linked.list('applied')), names)
  assert.deepEqual(await applied(setting), names)
})

test('ORD-06: what was applied last goes down first, and a dry run says so before', async (t) => {
  const setting = await api(t, migrations(['001.js', '003.js']))
  const kit = kitOf(t, setting)
  await kit.up()
  await setting.app.write('migrations/002.js', counting('002'))
  await kit.up()
  assert.ok(setting.eventsOf('warning').some(({ code }) => code === 'OUT_OF_ORDER'))

  assert.deepEqual(files(await kit.dryRun('down')), ['002.js'])
  assert.deepEqual(files(await kit.dryRun('down', undefined, { steps: 2 })), ['002.js', '003.js'])
  const reverted = await kit.down(undefined, { to: '001.js' })

  assert.deepEqual(files(reverted), ['002.js', '003.js'])
  assert.deepEqual(files(await kit.list('applied')), ['001.js'])
})

test('ORD-07: folders and pipes are no migrations, and nothing waits for a pipe', async (t) => {
  const setting = await api(t, migrations(['1-one.js']))
  const { migrationsDir } = setting.app
  await mkdir(join(migrationsDir, 'data'))
  await mkdir(join(migrationsDir, '20240101-foo.js'))
  execFileSync('mkfifo', [join(migrationsDir, '2-pipe.js')])

  assert.deepEqual(files(await kitOf(t, setting).up()), ['1-one.js'])
  assert.equal((await readdir(migrationsDir)).length, 4)
})

test('ORD-07: a file that can not be read is named, and nothing runs without it', async (t) => {
  const setting = await api(t, migrations(['1-one.js']))
  const { migrationsDir } = setting.app
  const link = join(migrationsDir, '2-broken.js')
  await symlink(join(migrationsDir, 'nowhere.js'), link)
  const kit = kitOf(t, setting)

  for (const action of [kit.up(), kit.status()]) {
    await assert.rejects(action, {
      code: 'MIGRATION_LOAD_FAILED',
      message: /2-broken\.js can't be read: /,
      hint: /make it readable, or remove it/,
    })
  }
  assert.deepEqual(await applied(setting), [])
  await rm(link)
  assert.deepEqual(files(await kit.up()), ['1-one.js'])
})
