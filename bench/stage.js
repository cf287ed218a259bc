/**
 * Where the measurements happen: apps in temporary folders, which all tools share, and databases on
 * a server, of which each tool has its own.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { root } from '../scripts/process.js'
import { measured } from './processes.js'
import { placeEnv } from './tools.js'

/** @import { Place, Tool } from './tools.js' */

/**
 * @typedef {object} App
 * @property {string} folder
 * @property {string[]} names of its migrations, in order
 *
 * @typedef {object} Stage
 * @property {{ replicaSet: string, standalone: string }} uris
 * @property {(uri?: string) => MongoClient} client
 * @property {(migrations: Record<string, string>) => Promise<App>} app
 * @property {(app: App, uri?: string) => Place} place with a database of its own
 * @property {() => Promise<void>} close drops what was made
 */

const migrateMongoConfig = `
export default {
  mongodb: { url: process.env.BENCH_URI, databaseName: process.env.BENCH_DB },
  migrationsDir: 'migrations',
  changelogCollectionName: 'changelog',
  lockCollectionName: 'changelog_lock',
  lockTtl: 0,
  migrationFileExtension: '.js',
  useFileHash: false,
  moduleSystem: 'esm',
}
`

/**
 * @param {Stage['uris']} uris
 * @returns {Promise<Stage>}
 */
export async function openStage(uris) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'mmk-bench-')))
  const clients = new Map(Object.values(uris).map((uri) => [uri, new MongoClient(uri)]))
  /** @type {{ uri: string, dbName: string }[]} */
  const made = []
  /** @param {string} uri */
  const client = (uri = uris.replicaSet) => /** @type {MongoClient} */ (clients.get(uri))
  return {
    uris,
    client,
    app: async (migrations) => writeApp(await mkdtemp(join(folder, 'app-')), migrations),
    place: ({ folder: of }, uri = uris.replicaSet) => {
      const place = { uri, dbName: `bench_${randomUUID().slice(0, 8)}`, folder: of }
      made.push(place)
      return place
    },
    close: async () => {
      for (const { uri, dbName } of made) await client(uri).db(dbName).dropDatabase()
      for (const each of clients.values()) await each.close()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/**
 * @param {string} folder
 * @param {Record<string, string>} migrations
 * @returns {Promise<App>}
 */
async function writeApp(folder, migrations) {
  const names = Object.keys(migrations)
  await mkdir(join(folder, 'migrations'))
  await mkdir(join(folder, 'node_modules'))
  const driver = join(root, 'node_modules', 'mongodb')
  await symlink(driver, join(folder, 'node_modules', 'mongodb'), 'junction')
  const manifest = { name: 'app', private: true, type: 'module' }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'migrate-mongo-config.js'), migrateMongoConfig)
  for (const [name, source] of Object.entries(migrations)) {
    await writeFile(join(folder, 'migrations', name), source)
  }
  return { folder, names }
}

/**
 * @param {number} count
 * @param {string} source
 * @returns {Record<string, string>} that many migrations, all alike
 */
export function alike(count, source) {
  const names = Array.from({ length: count }, (_, index) => {
    return `${String(index + 1).padStart(6, '0')}-step.js`
  })
  return Object.fromEntries(names.map((name) => [name, source]))
}

/**
 * One insert, in the form that all three tools run.
 */
export const trivial = `
export async function up(context) {
  await (context.db ?? context).collection('effects').insertOne({ done: true })
}
export async function down() {}
`

/**
 * The same in a transaction: the tool's own where it has one, the body's own elsewhere.
 */
export const transactional = `
export const useTransaction = true
export async function up(context, client) {
  if (context.session) {
    await context.db.collection('effects').insertOne({ done: true }, { session: context.session })
    return
  }
  const session = client.startSession()
  try {
    await session.withTransaction(() =>
      context.collection('effects').insertOne({ done: true }, { session }),
    )
  } finally {
    await session.endSession()
  }
}
export async function down() {}
`

/**
 * The history of a tool in which all migrations of an app are applied: the tool applies the first,
 * and its entry is the pattern for the others, whose files are alike.
 *
 * @param {Stage} stage
 * @param {App} app
 * @param {Tool} tool
 * @returns {Promise<Place>}
 */
export async function applied(stage, app, tool) {
  const place = stage.place(app)
  const changelog = stage.client(place.uri).db(place.dbName).collection(tool.changelog)
  const [first = '', ...others] = app.names
  if (tool.id === 'migrateMongo') {
    const entry = { appliedAt: new Date(), migrationBlock: Date.now() }
    await changelog.insertMany(app.names.map((fileName) => ({ ...entry, fileName })))
    return place
  }
  await measured([tool.cli, 'up', first], { cwd: app.folder, env: placeEnv(place) })
  const { _id: id, ...entry } = /** @type {any} */ (await changelog.findOne({ name: first }))
  const copies = others.map((name) => ({
    ...(typeof id === 'string' && { _id: /** @type {any} */ (id.replace(first, name)) }),
    ...entry,
    name,
  }))
  if (copies.length > 0) await changelog.insertMany(copies)
  return place
}
