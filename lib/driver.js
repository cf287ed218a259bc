/**
 * The Node driver: found where the app has it, loaded only when a body is about to run.
 *
 * Promises: the user's own client or Mongoose connection is used and never closed; a client that we
 * make carries the core's `appName` and gives up on an unreachable server before the lock is asked
 * for. It does not check what the URI means: the driver does.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { ConnectionFailedError, DependencyMissingError } from './errors.js'
import { redact, redactUri } from './redact.js'
import { describeThrown } from './thrown.js'

/** @import { Db, MongoClient, MongoClientOptions } from 'mongodb' */
/** @import { MmkConfig } from '../index.d.ts' */
/** @import { Causes } from './thrown.js' */

/** @typedef {typeof import('mongodb')} Driver */

/**
 * @typedef {object} Connection
 * @property {MongoClient} client
 * @property {Db} db
 * @property {Driver} driver the one that the client belongs to: BSON classes must match
 * @property {boolean} ours may we close it?
 */

/** Below the 10 s after which an unreachable server must have been reported. */
const CONNECT_TIMEOUT_MS = 8000

/**
 * @param {Readonly<MmkConfig>} config
 * @param {string} appName
 * @param {Causes} causes
 * @returns {Promise<Connection>}
 */
export async function connectDriver(config, appName, causes) {
  const theirs = config.client ?? (await mongooseClient(config.mongoose))
  const candidates = findDrivers(config)
  try {
    const driver = theirs ? driverOf(theirs, candidates) : candidates[0]
    const client = theirs ?? new driver.MongoClient(config.uri, clientOptions(config, appName))
    await connectOrClose(client, !theirs)
    return { client, db: client.db(config.dbName), driver, ours: !theirs }
  } catch (error) {
    throw connectionFailed(config, error, causes)
  }
}

/**
 * @param {MongoClient} client
 * @param {boolean} ours
 */
async function connectOrClose(client, ours) {
  try {
    await client.connect()
  } catch (error) {
    if (ours) await client.close().catch(() => {})
    throw error
  }
}

/**
 * Sessions belong to one client, so bodies that use Mongoose must run on Mongoose's.
 * @param {any} mongoose
 * @returns {Promise<MongoClient | null>}
 */
async function mongooseClient(mongoose) {
  const connection = mongoose?.connection
  const CONNECTED = 1
  const CONNECTING = 2
  if (connection?.readyState === CONNECTING) await connection.asPromise()
  return connection?.readyState === CONNECTED ? connection.getClient() : null
}

/**
 * Every copy of the driver that may be meant, the app's own first.
 * @param {Readonly<MmkConfig>} config
 * @returns {Driver[]}
 */
function findDrivers({ migrationsDir, mongoose }) {
  const places = [join(migrationsDir, '_'), join(process.cwd(), '_'), import.meta.url]
  const found = places.map(requireDriver).filter((driver) => driver !== null)
  if (mongoose?.mongo?.MongoClient) found.push(mongoose.mongo)
  if (found.length > 0) return found
  throw new DependencyMissingError('The MongoDB driver is not installed', {
    context: { package: 'mongodb', searched: places.slice(0, 2) },
    hint: 'npm install mongodb',
  })
}

/**
 * @param {string} from
 * @returns {Driver | null}
 */
function requireDriver(from) {
  const require = createRequire(from)
  try {
    require.resolve('mongodb')
  } catch {
    return null
  }
  return require('mongodb')
}

/**
 * A client of the user's may come from a copy that only the app can resolve; it is loaded, though.
 * @param {MongoClient} client
 * @param {Driver[]} candidates
 */
function driverOf(client, candidates) {
  const { cache } = createRequire(import.meta.url)
  const loaded = Object.keys(cache)
    .filter((path) => /[\\/]mongodb[^\\/]*[\\/]lib[\\/]index\.js$/.test(path))
    .map((path) => cache[path]?.exports)
  const all = [...candidates, ...loaded].filter((driver) => driver?.MongoClient)
  return all.find(({ MongoClient }) => client instanceof MongoClient) ?? candidates[0]
}

/**
 * @param {Readonly<MmkConfig>} config
 * @param {string} appName
 * @returns {MongoClientOptions}
 */
function clientOptions({ uri, mongoClientOptions = {} }, appName) {
  const { appname, ...theirs } = /** @type {Record<string, unknown>} */ (mongoClientOptions)
  /** @param {string} name */
  const timeout = (name) => {
    const set = new RegExp(`[?&]${name}=`, 'i').test(uri)
    return set ? {} : { [name]: CONNECT_TIMEOUT_MS }
  }
  return {
    ...timeout('serverSelectionTimeoutMS'),
    ...timeout('connectTimeoutMS'),
    ...theirs,
    appName,
  }
}

/**
 * @param {Readonly<MmkConfig>} config
 * @param {unknown} error
 * @param {Causes} causes
 */
function connectionFailed({ uri, dbName }, error, causes) {
  const { message } = describeThrown(error, causes)
  const reason = redact(message)
  return new ConnectionFailedError(`Could not connect to MongoDB: ${reason}`, {
    context: { cause: reason, uri: redactUri(uri), dbName },
    hint: 'Check that the server runs, and the host, port and credentials in the URI',
    cause: error,
  })
}
