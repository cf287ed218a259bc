/**
 * Another tool's history becomes ours: what is written, what is left out and why, and that nothing
 * that was applied before runs again.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { MigratorKit } from 'mongo-migrate-kit'
import { ObjectId } from 'mongodb'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { profiled, startProfile } from '../helpers/profile.js'
import { project } from '../helpers/project.js'

/** @import { ImportResult } from 'mongo-migrate-kit' */

const three = {
  '1-one.js': counting('one'),
  '2-two.js': counting('two'),
  '3-three.js': counting('three'),
}

/** @param {string} source */
const sha256 = (source) => createHash('sha256').update(source).digest('hex')

/** @param {number} day */
const day = (day) => new Date(Date.UTC(2024, 0, day, 12))

/** migrate-mongo's documents for the first two files: two runs of one migration each. */
const changelog = [
  { fileName: '2-two.js', appliedAt: day(2), migrationBlock: day(2).getTime() },
  { fileName: '1-one.js', appliedAt: day(1), migrationBlock: day(1).getTime() },
]

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, import('mongodb').Document[]>} sources documents by collection
 * @param {Record<string, string>} [migrations]
 */
async function app(t, sources, migrations = three) {
  const database = await freshDatabase(t)
  for (const [collection, documents] of Object.entries(sources)) {
    // Copies: the driver adds an `_id` to what it inserts.
    await database.db
      .collection(collection)
      .insertMany(documents.map((document) => ({ ...document })))
  }
  const created = await project(t, migrations, database)
  /** @param {string[]} args one command that must succeed */
  const ok = async (...args) => {
    const end = await created.mmk(args).ended
    assert.equal(end.code, 0, end.stdout + end.stderr)
    return end
  }
  /** @param {string[]} args @returns {Promise<ImportResult>} */
  const imported = async (...args) => JSON.parse((await ok('import', ...args, '--json')).stdout)
  const ups = async () => {
    const runs = await Promise.all(['one', 'two', 'three'].map((name) => runsOf(database, name)))
    return runs.map((run) => run.ups)
  }
  return { ...created, database, ok, imported, ups }
}

/** @param {ImportResult} result */
const outline = ({ rows }) => rows.map(({ file, batch }) => [file, batch])

test('IMP-01: up refuses to run what migrate-mongo has applied, and after the import runs the rest', async (t) => {
  const { mmk, ok, ups, database } = await app(t, { changelog })

  const refused = await mmk(['up']).ended

  assert.equal(refused.code, 4, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /FOREIGN_CHANGELOG/)
  assert.match(refused.stderr, /mmk import --from changelog/)
  assert.match(refused.stderr, /--force-fresh/)
  assert.deepEqual(await ups(), [0, 0, 0])
  assert.deepEqual(await database.entries(), [])
  assert.equal(await database.lock(), null)

  await ok('import')
  await ok('up')

  assert.deepEqual(await ups(), [0, 0, 1])
  assert.deepEqual(
    (await database.entries()).map(({ name, status, batch }) => [name, status, batch]),
    [
      ['1-one.js', 'applied', 1],
      ['2-two.js', 'applied', 2],
      ['3-three.js', 'applied', 3],
    ],
  )
})

test('a history that is marked by hand instead of imported lets up go on with the rest', async (t) => {
  const { mmk, ok, ups } = await app(t, { changelog })

  await ok('mark', '1-one.js', '--applied')
  const halfway = await mmk(['up']).ended
  const preview = await mmk(['up', '--dry-run']).ended
  await ok('mark', '2-two.js', '--applied')
  await ok('up')

  assert.equal(halfway.code, 4, halfway.stdout + halfway.stderr)
  assert.match(halfway.stderr, /FOREIGN_CHANGELOG: migrate-mongo has applied 2-two\.js/)
  assert.equal(preview.code, 4, preview.stdout + preview.stderr)
  assert.deepEqual(await ups(), [0, 0, 1])
})

test('up --force-fresh runs everything although another changelog has it', async (t) => {
  const { ok, ups } = await app(t, { changelog })

  await ok('up', '--force-fresh')

  assert.deepEqual(await ups(), [1, 1, 1])
})

test('up refuses what a changelog under a name of its own says, and an import without it finds it', async (t) => {
  const elsewhere = { my_changelog: changelog, orders: [{ fileName: 'invoice.pdf' }, { total: 3 }] }
  const { mmk, ok, imported, ups } = await app(t, elsewhere)

  const refused = await mmk(['up']).ended
  const found = await ok('import')

  assert.equal(refused.code, 4, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /FOREIGN_CHANGELOG: .*mmk import --from my_changelog/s)
  assert.match(found.stdout, /Nothing to import from "changelog"/)
  assert.match(
    found.stderr,
    /"my_changelog" says that migrate-mongo has applied .*`mmk import --from my_changelog`/,
  )
  const { imported: count } = await imported('--from', 'my_changelog')
  assert.equal(count, 2)
  const again = await ok('import')
  assert.doesNotMatch(again.stderr, /my_changelog/)
  await ok('up')
  assert.deepEqual(await ups(), [0, 0, 1])
})

test('what is no collection, is empty or looks like no changelog is not searched for one', async (t) => {
  const { ok, ups, database } = await app(t, {
    orders: [{ total: 3 }, { fileName: '1-one.js', appliedAt: day(1) }],
  })
  await database.db.createCollection('empty')
  await database.db.createCollection('history', { viewOn: 'orders', pipeline: [{ $skip: 1 }] })

  await ok('up')

  assert.deepEqual(await ups(), [1, 1, 1])
})

test('a foreign changelog about other files keeps nobody from running', async (t) => {
  const { ok, ups } = await app(t, {
    changelog: [{ fileName: 'another-app.js', appliedAt: day(1) }],
    migrations: [{ migrationName: '0001-not-ours.js' }],
  })

  await ok('up')

  assert.deepEqual(await ups(), [1, 1, 1])
})

test('up refuses what an import that was cut off has not taken over yet', async (t) => {
  const { mmk, imported, ups, database } = await app(t, { changelog })
  await imported()
  await database.db.collection('_mmk_migrations').deleteOne({ name: '2-two.js' })

  const refused = await mmk(['up']).ended
  const again = await imported()

  assert.equal(refused.code, 4, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /2-two\.js/)
  assert.deepEqual(await ups(), [0, 0, 0])
  assert.deepEqual(outline(again), [['2-two.js', 2]])
  assert.equal(again.alreadyThere, 1)
})

test('only a changelog without anything of our own is worth a look around', async (t) => {
  const others = [{ fileName: 'another-app.js', appliedAt: day(1) }]
  const { ok, write, database } = await app(t, { changelog: others })
  const looks = async () => (await profiled(database, { ns: `${database.name}.changelog` })).length
  await startProfile(database)

  await ok('up')
  const atFirst = await looks()
  await ok('up')
  await write('migrations/4-four.js', counting('four'))
  await ok('up')

  assert.deepEqual([atFirst, await looks()], [1, 1])
  assert.deepEqual((await runsOf(database, 'four')).ups, 1)
})

test('an entry looks as 1.x would have written it, and the source stays as it is', async (t) => {
  const { imported, database } = await app(t, { changelog })
  const before = await database.db.collection('changelog').find().toArray()

  const result = await imported()

  const entry = await database.entry('1-one.js')
  assert.deepEqual(
    {
      status: entry?.status,
      batch: entry?.batch,
      appliedAt: entry?.appliedAt,
      duration: entry?.duration,
      checksum: entry?.checksum,
      environment: entry?.environment,
      executedBy: entry?.executedBy,
      origin: entry?.origin,
      service: entry?.service,
    },
    {
      status: 'applied',
      batch: 1,
      appliedAt: day(1),
      duration: 0,
      checksum: sha256(three['1-one.js']),
      environment: 'imported',
      executedBy: 'mmk-import',
      origin: 'migrate-mongo',
      service: undefined,
    },
  )
  assert.deepEqual(await database.db.collection('changelog').find().toArray(), before)
  assert.equal(await database.lock(), null)
  const { source, target, tool, skipped, dryRun } = result
  assert.deepEqual(
    [source, target, tool, result.imported, skipped, dryRun],
    ['changelog', '_mmk_migrations', 'migrate-mongo', 2, 0, false],
  )
  assert.deepEqual(result.rows[0], {
    file: '1-one.js',
    batch: 1,
    appliedAt: day(1).toISOString(),
    checksum: sha256(three['1-one.js']),
    checksumSource: 'recomputed',
  })
})

test('a second import writes nothing, takes no lock, and says that all is there', async (t) => {
  const { imported, ok, database } = await app(t, { changelog })
  await imported()
  const entries = await database.entries()
  await holdLock(database)

  const again = await imported()
  const { stdout } = await ok('import')

  assert.deepEqual([again.imported, again.alreadyThere, again.rows], [0, 2, []])
  assert.match(stdout, /✔ Imported 0 record\(s\) from "changelog" → "_mmk_migrations"/)
  assert.match(stdout, /2 record\(s\) were there already/)
  assert.deepEqual(await database.entries(), entries)
})

test('an import waits for nobody: a held lock stops it', async (t) => {
  const { mmk, database } = await app(t, { changelog })
  await holdLock(database)

  const { code, stderr } = await mmk(['import']).ended

  assert.equal(code, 3, stderr)
  assert.match(stderr, /LOCK_ALREADY_HELD/)
  assert.deepEqual(await database.entries(), [])
})

test('--dry-run shows the table and writes nothing', async (t) => {
  const { ok, database } = await app(t, { changelog })

  const { stdout } = await ok('import', '--dry-run')

  assert.match(
    stdout,
    /◎ Dry-run {2}Would import 2 record\(s\) from "changelog" → "_mmk_migrations"/,
  )
  assert.match(stdout, /Migration.*Batch.*Applied At.*Checksum/)
  assert.match(stdout, /1-one\.js.*1.*recomputed/)
  assert.deepEqual(await database.entries(), [])
  assert.equal(await database.lock(), null)
})

test('a missing or empty source is nothing to import', async (t) => {
  const { ok, imported } = await app(t, {})

  const { stdout } = await ok('import')

  assert.match(stdout, /Nothing to import from "changelog"/)
  assert.deepEqual(await imported('--from', 'elsewhere'), {
    source: 'elsewhere',
    target: '_mmk_migrations',
    tool: null,
    imported: 0,
    skipped: 0,
    alreadyThere: 0,
    dryRun: false,
    rows: [],
    rejected: [],
  })
})

test('IMP-02: files that are not here are imported with a warning, or left out with --skip-missing', async (t) => {
  const sources = {
    changelog: [...changelog, { fileName: '0-of-another-app.js', appliedAt: day(1) }],
  }
  const kept = await app(t, sources)
  const leftOut = await app(t, sources)

  const all = await kept.ok('import')
  const ours = await leftOut.imported('--skip-missing')
  const status = await leftOut.ok('status', '--json')

  assert.match(all.stderr, /⚠ File not found on disk: 0-of-another-app\.js — checksum unverifiable/)
  assert.equal((await kept.database.entry('0-of-another-app.js'))?.checksum, '')
  assert.deepEqual([ours.imported, ours.skipped], [2, 1])
  assert.deepEqual(
    ours.rejected.map(({ why, file }) => [why, file]),
    [['noFile', null]],
  )
  assert.doesNotMatch(status.stdout, /another-app/)
})

test('IMP-03: odd documents of migrate-mongo become one entry for each file, or are listed', async (t) => {
  const hash = sha256(three['1-one.js'])
  const { mmk, database, ok } = await app(t, {
    changelog: [
      { fileName: '1-one.js', fileHash: 'an older hash', appliedAt: day(1) },
      { fileName: '1-one.js', fileHash: hash, appliedAt: day(5) },
      { fileName: '2-two', appliedAt: '2024-01-02T12:00:00Z' },
      { fileName: '3-three.js', appliedAt: 'yesterday' },
      { fileName: 'gone.js', appliedAt: null },
      { fileName: '../../etc/passwd', appliedAt: day(3) },
      { fileName: '', appliedAt: day(3) },
      { note: 'what is this?' },
    ],
    changelog_lock: [{ createdAt: day(1) }],
  })

  const end = await mmk(['import', '--json']).ended
  const result = /** @type {ImportResult} */ (JSON.parse(end.stdout))

  assert.equal(end.code, 4, end.stderr)
  assert.deepEqual(outline(result), [
    ['2-two.js', 1],
    ['1-one.js', 2],
  ])
  assert.deepEqual((await database.entry('2-two.js'))?.appliedAt, day(2))
  assert.equal((await database.entry('1-one.js'))?.checksum, hash)
  assert.equal(result.rows[1]?.checksumSource, 'reused')
  assert.equal(result.skipped, 6)
  assert.deepEqual(
    result.rejected.map(({ why, file }) => [why, file]).sort(),
    [
      ['malformed', null],
      ['malformed', null],
      ['malformed', null],
      ['malformed', null],
      ['malformed', '3-three.js'],
      ['superseded', null],
    ].sort(),
  )
  assert.match(
    end.stderr,
    /⚠ Skipping source doc 3-three\.js without a usable appliedAt \("yesterday"\)/,
  )
  assert.match(end.stderr, /⚠ Skipping source doc without a usable fileName/)
  assert.match(end.stderr, /mmk mark 3-three\.js --applied/)
  const entries = await database.entries()
  assert.ok(entries.every(({ appliedAt }) => appliedAt > day(1)))
  await ok('mark', '3-three.js', '--applied')
  await ok('import')
})

test('a file that has changed since is accepted with a warning, or kept as drift with --trust-hash', async (t) => {
  const sources = {
    changelog: [{ fileName: '1-one.js', fileHash: sha256('older'), appliedAt: day(1) }],
  }
  const plain = await app(t, sources)
  const trusting = await app(t, sources)

  const accepted = await plain.ok('import')
  const kept = await trusting.imported('--trust-hash')

  assert.match(accepted.stderr, /⚠ Changed since migrate-mongo applied it: 1-one\.js/)
  assert.equal((await plain.database.entry('1-one.js'))?.checksum, sha256(three['1-one.js']))
  assert.deepEqual(
    [kept.rows[0]?.checksum, kept.rows[0]?.checksumSource],
    [sha256('older'), 'reused'],
  )
})

test('a history that did not come from the source is not mixed with it unless --force says so', async (t) => {
  const { mmk, ok, imported, database } = await app(t, {}, { '9-own.js': counting('own') })
  await ok('up')
  await database.db
    .collection('changelog')
    .insertMany(changelog.map((document) => ({ ...document })))

  const refused = await mmk(['import', '--json']).ended
  const preview = await ok('import', '--dry-run')
  const forced = await imported('--force')

  assert.equal(refused.code, 4, refused.stderr)
  const { error } = JSON.parse(refused.stdout)
  assert.equal(error.code, 'IMPORT_TARGET_NOT_EMPTY')
  assert.deepEqual([error.details.target, error.details.existing], ['_mmk_migrations', 1])
  assert.match(preview.stderr, /--force/)
  assert.deepEqual(outline(forced), [
    ['1-one.js', 2],
    ['2-two.js', 3],
  ])
})

test('--to writes another collection, and a collection is not imported into itself', async (t) => {
  const { mmk, imported, database } = await app(t, { changelog })

  const result = await imported('--to', 'history')
  const itself = await mmk(['import', '--from', 'history', '--to', 'history']).ended

  assert.equal(result.target, 'history')
  assert.equal(await database.db.collection('history').countDocuments(), 2)
  assert.deepEqual(await database.entries(), [])
  assert.equal(itself.code, 2, itself.stderr)
  assert.match(itself.stderr, /INVALID_ARGUMENT.*"history".*itself/)
})

test('the entries of an import belong to the namespace that asked for it', async (t) => {
  const { ok, database } = await app(t, { changelog })

  await ok('import', '--namespace', 'orders')
  const refused = await ok('up', '--namespace', 'orders')

  assert.match(refused.stdout, /3-three\.js/)
  assert.deepEqual(
    (await database.entries()).map(({ namespace }) => namespace),
    ['orders', 'orders', 'orders'],
  )
})

/** What each tool leaves behind for `1-one` and `2-two` applied, in that order. */
const histories = {
  mongoat: {
    collection: '_migrations',
    files: ['20240101120000_one.js', '20240102120000_two.js'],
    documents: [
      {
        version: '20240102120000',
        name: 'two',
        checksum: sha256(counting('two')),
        appliedAt: day(2),
        status: 'applied',
      },
      {
        version: '20240101120000',
        name: 'one',
        checksum: sha256(counting('one')),
        appliedAt: day(1),
        status: 'applied',
      },
      {
        version: '20240103120000',
        name: 'three',
        checksum: 'x',
        appliedAt: day(3),
        status: 'failed',
      },
    ],
    times: [day(1), day(2)],
  },
  'ts-migrate-mongoose': {
    collection: 'migrations',
    files: [`${day(1).getTime()}-one.js`, `${day(2).getTime()}-two.js`],
    documents: [
      { name: 'two', state: 'up', createdAt: day(2), updatedAt: day(9) },
      { name: 'one', state: 'up', createdAt: day(1), updatedAt: day(8) },
      { name: 'three', state: 'down', createdAt: day(3), updatedAt: day(9) },
    ],
    times: [day(8), day(9)],
  },
  'mongo-migrate-ts': {
    collection: 'migrations_changelog',
    files: ['1-one.js', '2-two.js'],
    documents: [
      { file: '/srv/app/migrations/2-two.ts', className: 'Two2', timestamp: day(2).getTime() },
      { file: '1-one.js', className: 'One1', timestamp: day(1).getTime() },
    ],
    times: [day(1), day(2)],
  },
  umzug: {
    collection: 'migrations',
    files: ['1-one.js', '2-two.js'],
    documents: [
      { _id: ObjectId.createFromTime(day(2).getTime() / 1000), migrationName: '2-two' },
      { _id: ObjectId.createFromTime(day(1).getTime() / 1000), migrationName: '1-one.js' },
    ],
    times: [day(1), day(2)],
  },
  east: {
    collection: '_migrations',
    files: ['1_one.js', '2_two.js'],
    documents: [{ _id: '2_two' }, { _id: '1_one' }],
    times: null,
  },
}

for (const [tool, { collection, files, documents, times }] of Object.entries(histories)) {
  test(`the changelog of ${tool} is known by its shape, and its migrations revert in reverse order`, async (t) => {
    const migrations = Object.fromEntries(
      files.map((file, index) => [file, counting(['one', 'two'][index] ?? '')]),
    )
    const { mmk, imported, database, ok, ups } = await app(
      t,
      { [collection]: documents },
      migrations,
    )

    const refused = await mmk(['up']).ended
    const result = await imported('--from', collection)
    const status = await ok('status', '--check')
    const reverted = await ok('down', '--steps', '2', '--json')

    assert.equal(refused.code, 4, refused.stdout + refused.stderr)
    assert.match(refused.stderr, new RegExp(`mmk import --from ${collection}`))
    assert.equal(result.tool, tool)
    assert.deepEqual(
      outline(result),
      files.map((file, index) => [file, index + 1]),
    )
    const entries = await Promise.all(files.map((file) => database.entry(file)))
    if (times)
      assert.deepEqual(
        entries.map((entry) => entry?.appliedAt),
        times,
      )
    else assert.ok(entries.every((entry) => entry?.appliedAt instanceof Date))
    assert.match(status.stdout, /applied/)
    assert.deepEqual(
      JSON.parse(reverted.stdout).map((/** @type {{ file: string }} */ { file }) => file),
      files.toReversed(),
    )
    assert.deepEqual(await ups(), [0, 0, 0])
    assert.equal((await runsOf(database, 'two')).downs, 1)
  })
}

test('a collection that two tools have used needs --tool', async (t) => {
  const { mmk, imported } = await app(t, {
    migrations: [{ migrationName: '1-one.js' }, { name: 'x', state: 'up', createdAt: day(1) }],
  })

  const refused = await mmk(['import', '--from', 'migrations']).ended
  const first = await mmk(['up']).ended
  const result = await imported('--tool', 'umzug')

  assert.equal(refused.code, 2, refused.stderr)
  assert.match(refused.stderr, /ts-migrate-mongoose, umzug/)
  assert.match(first.stderr, /mmk import --from migrations --tool umzug/)
  assert.deepEqual(outline(result), [['1-one.js', 1]])
  assert.equal(result.source, 'migrations')
})

test('a collection of something else is refused, and so is a tool that nobody knows', async (t) => {
  const { mmk } = await app(t, { users: [{ name: 'ann' }] })

  const users = await mmk(['import', '--from', 'users']).ended
  const tool = await mmk(['import', '--tool', 'flyway']).ended

  assert.equal(users.code, 2, users.stderr)
  assert.match(users.stderr, /INVALID_ARGUMENT.*"users"/)
  assert.equal(tool.code, 2, tool.stderr)
  assert.match(tool.stderr, /"flyway".*migrate-mongo, mongoat/)
})

test('the API imports as the command does', async (t) => {
  const { database, migrationsDir } = await app(t, { changelog })
  const kit = new MigratorKit({ ...database.config, migrationsDir, logger: null })
  t.after(() => kit.disconnect())

  await assert.rejects(kit.up(), { code: 'FOREIGN_CHANGELOG' })
  const result = await kit.import({ from: 'changelog' })

  assert.equal(result.imported, 2)
  assert.deepEqual(result.rows[0]?.appliedAt, day(1))
  assert.deepEqual(
    (await kit.up()).map(({ file }) => file),
    ['3-three.js'],
  )
})
