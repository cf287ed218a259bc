/**
 * The three that are measured side by side, and how each is made to do the same thing.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/process.js'

/**
 * @typedef {'ours' | 'oneX' | 'migrateMongo'} ToolId
 * @typedef {{ id: ToolId, folder: string, cli: string, changelog: string, label: string }} Tool
 *
 * @typedef {object} Place where a tool works
 * @property {string} uri
 * @property {string} dbName
 * @property {string} folder the app's
 *
 * @typedef {object} Running
 * @property {boolean} [wait] for the lock, if it is held
 * @property {number} [ttlSeconds]
 * @property {() => void} [onWaiting] the lock is held, and the tool waits for it
 */

const modules = join(root, 'node_modules')

/** @type {Readonly<Record<ToolId, Tool>>} */
export const tools = {
  ours: tool('ours', 'mmk', root, 'bin/mmk.js', '_mmk_migrations'),
  oneX: tool(
    'oneX',
    'mmk',
    join(modules, 'mongo-migrate-kit-1x'),
    'dist/mmk.cjs',
    '_mmk_migrations',
  ),
  migrateMongo: tool(
    'migrateMongo',
    'migrate-mongo',
    join(modules, 'migrate-mongo'),
    'bin/migrate-mongo.js',
    'changelog',
  ),
}

/** @type {readonly Tool[]} */
export const everyTool = Object.values(tools)

/**
 * @param {ToolId} id
 * @param {string} name
 * @param {string} folder
 * @param {string} cli
 * @param {string} changelog
 * @returns {Tool}
 */
function tool(id, name, folder, cli, changelog) {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return { id, folder, cli: join(folder, cli), changelog, label: `${name} ${version}` }
}

/**
 * The environment in which a tool's command line finds its place.
 * @param {Place} place
 */
export const placeEnv = ({ uri, dbName }) => ({
  MMK_URI: uri,
  MMK_DB: dbName,
  BENCH_URI: uri,
  BENCH_DB: dbName,
})

/**
 * Load a tool as an app does.
 *
 * @param {ToolId} id
 * @returns {Promise<(place: Place, how?: Running) => Promise<number>>} applies what is pending;
 *   resolves to how many that were
 */
export async function load(id) {
  if (id === 'ours') {
    const { runMigrations } = await import('mongo-migrate-kit')
    return async (place, how = {}) => {
      /** @param {{ type: string }} event */
      const onEvent = ({ type }) => type === 'lockWaiting' && how.onWaiting?.()
      const config = { ...configOf(place, how), logger: null, onEvent }
      return (await runMigrations(config, waitingOf(how))).applied.length
    }
  }
  if (id === 'oneX') {
    const { runMigrations } = await import('mongo-migrate-kit-1x')
    return async (place, how = {}) => {
      const config = { ...configOf(place, how), logger: waitingLogger(how) }
      return (await runMigrations(config, waitingOf(how))).applied.length
    }
  }
  return loadMigrateMongo()
}

/** @param {Place} place @param {Running} how */
const configOf = ({ uri, dbName, folder }, { ttlSeconds }) => ({
  uri,
  dbName,
  migrationsDir: join(folder, 'migrations'),
  ...(ttlSeconds && { lockTTLSeconds: ttlSeconds }),
})

/**
 * @param {Running} how
 * @returns {{ onLockHeld?: 'wait', lockWaitTimeoutMs?: number }}
 */
const waitingOf = ({ wait }) => (wait ? { onLockHeld: 'wait', lockWaitTimeoutMs: 120_000 } : {})

/** 1.x tells that it waits by a line of its log, once. @param {Running} how */
function waitingLogger({ onWaiting }) {
  const silent = () => {}
  /** @param {string} message */
  const info = (message) => {
    if (message.includes('waiting')) onWaiting?.()
  }
  return { info, success: silent, warn: silent, error: silent, dim: silent }
}

async function loadMigrateMongo() {
  // It ships no types.
  const name = 'migrate-mongo'
  const { config, database, up } = await import(name)
  /** @param {Place} place */
  return async ({ uri, dbName, folder }) => {
    config.set({
      mongodb: { url: uri, databaseName: dbName },
      migrationsDir: join(folder, 'migrations'),
      changelogCollectionName: 'changelog',
      lockCollectionName: 'changelog_lock',
      lockTtl: 0,
      migrationFileExtension: '.js',
      useFileHash: false,
      moduleSystem: 'esm',
    })
    const { db, client } = await database.connect()
    const migrated = await up(db, client)
    await client.close()
    return migrated.length
  }
}
