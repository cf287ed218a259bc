import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { createMigration, slugOf } from '../../lib/create.js'

const ALL = ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts']

/** @type {string} */
let root

/** @type {import('../../lib/create.js').CreateConfig} */
let config

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'mmk-create-'))
  config = {
    migrationsDir: join(root, 'migrations'),
    fileExtensions: ALL,
    createExtension: 'js',
    sequential: false,
  }
})

afterEach(() => rm(root, { recursive: true }))

/** @param {Record<string, unknown>} data */
const packageJson = (data) => writeFile(join(root, 'package.json'), JSON.stringify(data))

describe('the name of a new migration', () => {
  it('is a UTC stamp and a slug, in a directory that is made when it is missing', async () => {
    const before = utcStamp()
    const name = basename(await createMigration(config, 'Add user index!'))
    assert.match(name, /^\d{14}-add-user-index\.js$/)
    assert.ok(name.slice(0, 14) >= before && name.slice(0, 14) <= utcStamp(1000))
  })

  it('keeps letters and digits of every script', () => {
    assert.equal(slugOf('  Été déjà_2 '), 'été-déjà-2')
    assert.equal(slugOf('e\u0301te\u0301'), 'été')
    assert.equal(slugOf('日本 の 索引'), '日本-の-索引')
  })

  it('is refused without a letter or a digit', () => {
    for (const name of ['', '---', '🚀', '../..']) {
      assert.throws(() => slugOf(name), { code: 'INVALID_ARGUMENT' })
    }
  })

  it("can't leave the directory", async () => {
    const path = await createMigration(config, '../../etc/passwd')
    assert.match(path, /migrations[\\/]\d{14}-etc-passwd\.js$/)
  })

  it('stays within 200 bytes and whole characters', async () => {
    const name = basename(await createMigration(config, '日'.repeat(300)))
    assert.ok(Buffer.byteLength(name) <= 200)
    assert.match(name, /^\d{14}-日+\.js$/u)
  })

  it('never takes the place of another, and sorts after it, in the same second', async () => {
    const names = []
    for (const name of ['z', 'z', 'a']) names.push(basename(await createMigration(config, name)))
    assert.deepEqual((await readdir(config.migrationsDir)).sort(), names)
  })

  it('gives each of several creators at once a file of their own', async () => {
    const paths = await Promise.all(
      Array.from({ length: 8 }, () => createMigration(config, 'same')),
    )
    assert.equal(new Set(paths).size, 8)
  })

  it('is the highest number plus one when sequential, whatever was deleted', async () => {
    const sequential = { ...config, sequential: true }
    const first = await createMigration(sequential, 'a')
    await createMigration(sequential, 'b')
    await rm(first)
    assert.equal(basename(await createMigration(sequential, 'c')), '0003-c.js')
  })

  it('refuses a number that would run before the last', async () => {
    const sequential = { ...config, sequential: true }
    await createMigration(sequential, 'a')
    await writeFile(join(config.migrationsDir, '9999-last.js'), '')
    await assert.rejects(createMigration(sequential, 'b'), {
      code: 'INVALID_ARGUMENT',
      message: /10000 would run before 9999/,
    })
  })
})

describe('the text of a new migration', () => {
  it('is CommonJS where Node reads .js files so', async () => {
    await packageJson({})
    const text = await readFile(await createMigration(config, 'a'), 'utf8')
    assert.match(text, /^module\.exports = \{ up, down \}$/m)
  })

  it('is an ES module where Node reads .js files so', async () => {
    await packageJson({ type: 'module' })
    const text = await readFile(await createMigration(config, 'a'), 'utf8')
    assert.match(text, /^export async function up/m)
  })

  for (const type of ['module', 'commonjs']) {
    it(`loads with both functions in a project of type ${type}`, async () => {
      await packageJson({ type })
      const loaded = await import(await createMigration(config, 'a'))
      assert.equal(typeof loaded.up, 'function')
      assert.equal(typeof loaded.down, 'function')
    })
  }

  it('is typed for TypeScript', async () => {
    const path = await createMigration(config, 'a', { ts: true })
    assert.match(path, /\.ts$/)
    assert.match(await readFile(path, 'utf8'), /up\(\{ db, session \}: MigrationContext\)/)
  })

  it('comes from the template that the caller names, then from the configured one', async () => {
    await writeFile(join(root, 'mine.js'), 'mine')
    await writeFile(join(root, 'ours.js'), 'ours')
    const withTemplate = { ...config, templatePath: 'ours.js' }
    const ours = await createMigration(withTemplate, 'a', { cwd: root })
    const mine = await createMigration(withTemplate, 'b', { cwd: root, template: 'mine.js' })
    assert.equal(await readFile(ours, 'utf8'), 'ours')
    assert.equal(await readFile(mine, 'utf8'), 'mine')
  })

  it('is not written when the template is missing', async () => {
    await assert.rejects(createMigration(config, 'a', { template: 'no.js', cwd: root }), {
      code: 'MIGRATION_FILE_NOT_FOUND',
      context: { templatePath: 'no.js', resolved: join(root, 'no.js') },
    })
    assert.deepEqual(await readdir(root), [])
  })
})

describe('the extension of a new migration', () => {
  it('is one that counts as a migration', async () => {
    const path = await createMigration({ ...config, fileExtensions: ['.mjs'] }, 'a')
    assert.match(path, /-a\.mjs$/)
  })

  it('is refused when none of its kind does', async () => {
    await assert.rejects(
      createMigration({ ...config, fileExtensions: ['.js'] }, 'a', { ts: true }),
      {
        code: 'INVALID_ARGUMENT',
        message: /fileExtensions is \.js/,
      },
    )
  })
})

/** @param {number} [later] */
function utcStamp(later = 0) {
  const iso = new Date(Date.now() + later).toISOString()
  return iso.replaceAll(/\D/g, '').slice(0, 14)
}
