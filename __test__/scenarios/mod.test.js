/**
 * Loading what people write: every module system and extension, on the Node that runs the tests.
 */
import assert from 'node:assert/strict'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { MigratorKit, runMigrations } from 'mongo-migrate-kit'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

/** @param {string} name as an ES module */
const esm = (name) =>
  `export const up = async ({ db }) => db.collection('ran').insertOne({ _id: '${name}' })`
/** @param {string} name as CommonJS */
const cjs = (name) => esm(name).replace('export const up', 'exports.up')

/**
 * A project with a configuration file, and all that is pending in it applied by this process.
 *
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 * @param {import('../helpers/project.js').Options & { manifest?: object }} [options]
 */
async function applied(t, migrations, { manifest, ...options } = {}) {
  const database = await freshDatabase(t)
  const app = await project(t, migrations, { env: database.env, ...options })
  if (manifest) await app.write('package.json', JSON.stringify(manifest))
  const run = async (more = {}) => {
    const config = { ...database.config, migrationsDir: app.migrationsDir, logger: null, ...more }
    return (await runMigrations(config)).applied.map(({ file }) => file)
  }
  const ran = async () => {
    const found = await database.db.collection('ran').find().sort({ _id: 1 }).toArray()
    return found.map(({ _id }) => String(_id))
  }
  return { ...app, database, run, ran }
}

/** @param {() => Promise<unknown>} work @returns {Promise<any>} */
const failure = (work) =>
  work().then(
    () => assert.fail('it was accepted'),
    (error) => error,
  )

/** @type {Record<string, (config: string) => string>} how a configuration is exported, in a .js file */
const exportsOf = {
  'a default export': (config) => `export default ${config}`,
  'module.exports': (config) => `module.exports = ${config}`,
  'exports.default': (config) => `exports.default = ${config}`,
}

for (const type of ['module', 'commonjs', undefined]) {
  test(`MOD-01: both module systems give the same result in a package of type ${type ?? 'none'}`, async (t) => {
    const migrations = {
      '1.js': esm('1'),
      '2.js': cjs('2'),
      '3.js': `export default { up: ${esm('3').replace('export const up = ', '')} }`,
      '4.mjs': esm('4'),
      '5.cjs': cjs('5'),
    }
    const app = await applied(t, migrations, { manifest: { name: 'app', ...(type && { type }) } })
    for (const [what, text] of Object.entries(exportsOf)) {
      // Each has a name of its own: a process loads a module once.
      const path = await app.write(
        `conf/${what.replace(/\W/g, '')}.js`,
        text(JSON.stringify({ ...app.database.config, logger: null })),
      )
      const kit = new MigratorKit({ migrationsDir: app.migrationsDir }, { configPath: path })
      assert.equal((await kit.status()).length, 5, what)
      await kit.disconnect()
    }
    await app.run()
    assert.deepEqual(await app.ran(), ['1', '2', '3', '4', '5'])
  })
}

test('MOD-02: ES syntax is run wherever a package.json near it says otherwise', async (t) => {
  const migrations = { '1.js': esm('1'), '2.mjs': esm('2'), '3.js': cjs('3') }
  for (const [outer, inner] of [
    [{}, { type: 'commonjs' }],
    [{ type: 'commonjs' }, { type: 'module' }],
    [{ type: 'module' }, { type: 'commonjs' }],
  ]) {
    const app = await applied(t, migrations, { manifest: outer })
    await app.write('migrations/package.json', JSON.stringify(inner))
    await app.run()
    assert.deepEqual(await app.ran(), ['1', '2', '3'], JSON.stringify([outer, inner]))
  }
})

test('MOD-02: a file that can not be read is named with its line, and nothing has run', async (t) => {
  const app = await applied(t, {
    '1.js': esm('1'),
    '2.js': 'export const up = async () => {\n  const = 1\n}',
  })
  const error = await failure(() => app.run())
  assert.equal(error.code, 'MIGRATION_LOAD_FAILED')
  assert.match(error.message, /2\.js:2:\d+/)
  assert.deepEqual(await app.ran(), [])
})

test('MOD-05: a TypeScript migration runs as created in a package that says nothing of modules', async (t) => {
  const app = await applied(
    t,
    {},
    { manifest: { name: 'app', version: '1.0.0', main: 'index.js' } },
  )
  for (const args of [['init', '--ts'], ['create', 'first step', '--ts'], ['up']]) {
    const { code, stdout, stderr } = await app.mmk(args).ended
    assert.equal(code, 0, `mmk ${args.join(' ')}: ${stdout}${stderr}`)
  }
  const [entry] = await app.database.entries()
  assert.match(entry?.name, /^\d{14}-first-step\.ts$/)
})

test('MOD-06: TypeScript that is more than types runs, in what a migration imports too', async (t) => {
  const app = await applied(t, {
    '1.ts': `
      import { Colour, Point, Shapes } from '../app/shapes'
      enum Local { Three = 3 }
      export const up = async ({ db }: { db: any }): Promise<void> => {
        const point = new Point(Local.Three)
        await db.collection('ran').insertOne({ _id: [Colour.Red, point.x, Shapes.sides, point.double()].join(' ') })
      }`,
  })
  await app.write(
    'app/shapes.ts',
    `export enum Colour { Red = 'red' }
     export namespace Shapes { export const sides = 4 }
     export class Point {
       constructor(public readonly x: number) {}
       double(): number { return 2 * this.x }
     }`,
  )
  await app.run()
  assert.deepEqual(await app.ran(), ['red 3 4 6'])
})

test('MOD-07: what was applied as .ts does not run again as the .js that a build makes of it', async (t) => {
  const app = await applied(t, { '1.ts': esm('1') })
  await app.run()
  await rm(join(app.migrationsDir, '1.ts'))
  await writeFile(join(app.migrationsDir, '1.js'), esm('again'))

  const error = await failure(() => app.run())
  assert.equal(error.code, 'MIGRATION_INVALID_NAME', error.stack)
  assert.match(error.message, /"1\.js" was applied as "1\.ts"/)
  assert.match(error.hint, /mmk mark <file> --applied/)

  const { code, stdout, stderr } = await app.mmk(['mark', '1.js', '--applied']).ended
  assert.equal(code, 0, stdout + stderr)
  assert.deepEqual(await app.run(), [])
  assert.deepEqual(await app.ran(), ['1'])
})

test('MOD-08: every extension is seen, and two files that differ in it alone are refused by both names', async (t) => {
  const all = {
    '1.js': esm('1'),
    '2.cjs': cjs('2'),
    '3.mjs': esm('3'),
    '4.ts': esm('4').replace('{ db }', '{ db }: any'),
    '5.cts': cjs('5'),
    '6.mts': esm('6'),
  }
  const app = await applied(t, all)
  assert.deepEqual(await app.run(), Object.keys(all))

  await app.write('migrations/7.ts', esm('7'))
  await app.write('migrations/7.js', esm('7'))
  const error = await failure(() => app.run())
  assert.match(error.message, /"7\.js" and "7\.ts" are the same migration twice/)
})

test('MOD-09: a configuration is an object or what makes one, and anything else is named', async (t) => {
  const app = await applied(t, {})
  const config = JSON.stringify(app.database.config)
  /** @type {[text: string, complaint: RegExp | null][]} */
  const forms = [
    [`export default ${config}`, null],
    [`export default Promise.resolve(${config})`, null],
    [`export default async () => (${config})`, null],
    [`export default () => (${config})`, null],
    [`export default Object.freeze(${config})`, null],
    [
      `class Config { uri = ${JSON.stringify(app.database.uri)}; dbName = 'app' }\nexport default new Config()`,
      null,
    ],
    ['export default null', /must export an object/],
    ['export default [1]', /must export an object, .*a list of 1/],
    ['export default async () => undefined', /must export an object/],
    ['export default { dbName: "app" }', /uri is required/],
    [
      `export default { ...${config}, migrationsCollection: undefined, lockCollection: 3 }`,
      /lockCollection must be a string/,
    ],
  ]
  for (const [index, [text, complaint]] of forms.entries()) {
    const configPath = await app.write(`conf/${index}.mjs`, text)
    const kit = new MigratorKit({ migrationsDir: app.migrationsDir, logger: null }, { configPath })
    const outcome = kit.status().then(
      (rows) => assert.deepEqual([rows, complaint], [[], null], text),
      (error) => assert.match(error.message, complaint ?? /^$/, text),
    )
    await outcome
    await kit.disconnect()
  }
})

test('MOD-10: a new migration is in the language and module system that was asked for, and runs unchanged', async (t) => {
  for (const type of /** @type {const} */ (['module', 'commonjs'])) {
    const app = await applied(t, {}, { type })
    const config = { ...app.database.config, migrationsDir: app.migrationsDir, logger: null }
    const kit = new MigratorKit({ ...config, createExtension: 'ts' })
    process.chdir(app.folder)
    const paths = [
      await kit.create('it\'s a/b "c"'),
      await kit.create('it\'s a/b "c"'),
      await kit.create('plain', { js: true }),
    ]
    await kit.disconnect()
    const names = (await readdir(app.migrationsDir)).sort()
    assert.equal(new Set(paths).size, 3)
    assert.deepEqual(
      names.map((name) => name.replace(/^\d+-/, '')),
      ['it-s-a-b-c.ts', 'it-s-a-b-c.ts', 'plain.js'],
    )
    const text = await readFile(join(app.migrationsDir, names[2] ?? ''), 'utf8')
    assert.equal(/\bexport\b/.test(text.replace(/\/\*[\s\S]*?\*\//g, '')), type === 'module', text)
    assert.deepEqual(await app.run(), names)
  }
})
