/**
 * Input that can't be used: each gets an error that names it, an exit code that says whose turn it is,
 * and a database that was not touched.
 */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../../scripts/process.js'
import { counting } from '../helpers/bodies.js'
import { start } from '../helpers/child.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const good = { '1-good.js': counting('good') }

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 */
async function app(t, migrations = good) {
  const database = await freshDatabase(t)
  return { database, ...(await project(t, migrations, database)) }
}

/**
 * @param {import('../helpers/child.js').Child} child
 * @param {{ code: number, says: RegExp[] }} expected
 */
async function refused(child, { code, says }) {
  const end = await child.ended
  assert.equal(end.code, code, end.stdout + end.stderr)
  for (const pattern of says) assert.match(end.stderr, pattern)
  assert.doesNotMatch(end.stderr, /^\s+at .*node:internal/m, 'no stack of ours')
  return end
}

/** @param {import('../helpers/database.js').Database} database */
async function untouched({ db }) {
  assert.deepEqual(await db.listCollections().toArray(), [])
}

test('without a URI, up says which setting is missing and how to set it', async (t) => {
  const { mmk } = await app(t)
  await refused(mmk(['up'], { env: { MMK_URI: '', MMK_DB: '' } }), {
    code: 2,
    says: [/CONFIG_INVALID/, /\buri\b/, /MMK_URI/, /--uri/],
  })
})

test('a URI that is none is refused, naming where it came from', async (t) => {
  const { mmk } = await app(t)
  const end = await refused(mmk(['up'], { env: { MMK_URI: 'https://user:sekret@db.test/' } }), {
    code: 2,
    says: [/CONFIG_INVALID/, /MMK_URI/, /mongodb/],
  })
  assert.doesNotMatch(end.stdout + end.stderr, /sekret/)
})

test('several problems of the configuration are reported at once', async (t) => {
  const { mmk } = await app(t)
  await refused(
    mmk(['up'], { env: { MMK_URI: 'nonsense', MMK_LOCK_TTL: 'soon', MMK_STRICT: '7' } }),
    {
      code: 2,
      says: [/3 problem/, /\buri\b/, /lockTTLSeconds/, /strict/],
    },
  )
})

test('a server that is down fails within ten seconds, naming host and reason and no password', async (t) => {
  const { mmk } = await app(t)
  const began = performance.now()
  const env = { MMK_URI: 'mongodb://user:sekret@127.0.0.1:1/' }
  const end = await refused(mmk(['up'], { env }), {
    code: 1,
    says: [/CONNECTION_FAILED/, /127\.0\.0\.1:1/, /refused/i],
  })
  assert.ok(end.endedAt - began < 10_000, `${end.endedAt - began} ms`)
  assert.doesNotMatch(end.stdout + end.stderr, /sekret/)
})

test('a file that does not exist is named, with those that do', async (t) => {
  const { mmk, database } = await app(t)
  await refused(mmk(['up', '9-missing.js']), {
    code: 2,
    says: [/MIGRATION_FILE_NOT_FOUND/, /9-missing\.js/, /1-good\.js/],
  })
  await untouched(database)
})

test('a path instead of a file name is refused', async (t) => {
  const { mmk, database } = await app(t)
  await refused(mmk(['up', '../1-good.js']), { code: 2, says: [/MIGRATION_INVALID_NAME/] })
  await untouched(database)
})

test('a file without up is named before anything ran', async (t) => {
  const { mmk, database } = await app(t, { ...good, '2-empty.js': 'export function upp() {}' })
  await refused(mmk(['up']), {
    code: 2,
    says: [/MIGRATION_INVALID_EXPORT/, /2-empty\.js/, /\bup\b/, /\bupp\b/],
  })
  await untouched(database)
})

for (const extension of ['js', 'mjs', 'cjs', 'ts', 'mts', 'cts']) {
  test(`a syntax error in a .${extension} file is named with its line before anything ran`, async (t) => {
    const name = `2-broken.${extension}`
    const { mmk, database } = await app(t, { ...good, [name]: '// fine\n\nconst = 1\n' })
    await refused(mmk(['up']), {
      code: 2,
      says: [/MIGRATION_LOAD_FAILED/, new RegExp(`2-broken\\.${extension}\\D+3\\b`)],
    })
    await untouched(database)
  })
}

test('an error at the top level of a file is named with the file before anything ran', async (t) => {
  const { mmk, database } = await app(t, { ...good, '2-top.js': "import './no-such-thing.js'" })
  await refused(mmk(['up']), {
    code: 2,
    says: [/MIGRATION_LOAD_FAILED/, /2-top\.js/, /no-such-thing/],
  })
  await untouched(database)
})

test('a migrations directory that does not exist is an error for up and a warning for status', async (t) => {
  const { mmk, database, migrationsDir } = await app(t)
  await rm(migrationsDir, { recursive: true })

  await refused(mmk(['up']), { code: 2, says: [/MIGRATIONS_DIR_NOT_FOUND/, /migrations/] })
  const status = await mmk(['status']).ended
  assert.equal(status.code, 0, status.stderr)
  assert.match(status.stderr, /migrations/)
  await untouched(database)
})

test('an unknown command, flag or value is a usage error with a hint', async (t) => {
  const { mmk } = await app(t)
  await refused(mmk(['statu']), { code: 2, says: [/statu/, /status/] })
  await refused(mmk(['up', '--stepp']), { code: 2, says: [/--stepp/, /--step/] })
  await refused(mmk(['down', '--steps', 'two']), { code: 2, says: [/two/] })
})

test('a missing argument that has choices is told with them', async (t) => {
  const { mmk } = await app(t)
  await refused(mmk(['dry-run']), { code: 2, says: [/'direction': up or down/] })
  await refused(mmk(['completion']), { code: 2, says: [/'shell': bash, zsh or fish/] })
  await refused(mmk(['create']), { code: 2, says: [/missing required argument 'name'\n/] })
})

test('a time behind --wait is refused with the spelling that waits, before anything is waited for', async (t) => {
  const { mmk, database } = await app(t)
  for (const args of [
    ['--wait', '5000'],
    ['5000', '--wait'],
    ['--wait', '5000', '--dry-run'],
  ]) {
    await refused(mmk(['up', ...args]), { code: 2, says: [/"5000"/, /`--wait=5000`/] })
  }
  await refused(mmk(['up', '5000']), { code: 2, says: [/MIGRATION_FILE_NOT_FOUND/] })
  await untouched(database)
})

test('a full disk behind stdout ends no run, and is told', {
  skip: process.platform === 'linux' ? false : 'needs /dev/full',
}, async (t) => {
  const database = await freshDatabase(t)
  const { folder, env } = await project(
    t,
    { '1.js': counting('1'), '2.js': counting('2') },
    database,
  )
  const command = `"${process.execPath}" "${join(root, 'bin', 'mmk.js')}" up > /dev/full`
  const { code, stderr } = await start('sh', ['-c', command], { cwd: folder, env }).ended
  assert.equal(code, 1, stderr)
  assert.equal(stderr.match(/Standard output can't be written: .*ENOSPC/g)?.length, 1, stderr)
  assert.doesNotMatch(stderr, /^ {4}at /m)
  const statuses = (await database.entries()).map(({ status }) => status)
  assert.deepEqual(statuses, ['applied', 'applied'])
})

test('under --json a failure is one document on stdout with code, message, details and hint', async (t) => {
  const { mmk } = await app(t)
  const { code, stdout } = await mmk(['up', '9-missing.js', '--json']).ended
  assert.equal(code, 2)
  const { error } = JSON.parse(stdout)
  assert.equal(error.code, 'MIGRATION_FILE_NOT_FOUND')
  assert.match(error.message, /9-missing\.js/)
  assert.ok('details' in error && 'hint' in error)
})
