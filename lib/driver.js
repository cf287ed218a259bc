/**
 * The Node driver: found where the app has it, loaded only when a body is about to run.
 *
 * Promises: the user's own client or Mongoose connection is used and never closed; a client that we
 * make carries the core's `appName` and gives up on an unreachable server before the lock is asked
 * for. It does not check what the URI means: the driver does.
 */
import { driverOf, findDrivers } from './driver-copies.js'
import { ConfigInvalidError, ConnectionFailedError, DependencyMissingError } from './errors.js'
import { countOperations } from './monitor.js'
import { redact, redactUri } from './redact.js'
import { describeThrown } from './thrown.js'

/** @import { Db, MongoClient, MongoClientOptions } from 'mongodb' */
/** @import { MmkConfig } from '../index.d.ts' */
/** @import { Driver } from './driver-copies.js' */
/** @import { Causes } from './thrown.js' */

/**
 * @typedef {object} Connection
 * @property {MongoClient} client
 * @property {Db} db
 * @property {Driver} driver the one that the client belongs to: BSON classes must match
 * @property {boolean} ours may we close it?
 * @property {boolean} monitored does it tell of its commands?
 * @property {() => number} openOperations how many are under way; 0 on a client that isn't ours
 */

/** Below the 10 s after which an unreachable server must have been reported. */
const CONNECT_TIMEOUT_MS = 8000

/**
 * @typedef {object} Wanted
 * @property {Readonly<MmkConfig>} config
 * @property {string} appName
 * @property {boolean} monitored does our client tell of its commands? Every reply is parsed for it
 * @property {Causes} causes
 */

/**
 * @param {Wanted} wanted
 * @returns {Promise<Connection>}
 */
export async function connectDriver({ config, appName, monitored, causes }) {
  const theirs = config.client ?? (await mongooseClient(config.mongoose))
  const candidates = findDrivers(config)
  const driver = theirs ? driverOf(theirs, candidates) : candidates[0]
  const client = theirs ?? makeClient(driver, { config, appName, monitored, causes })
  try {
    const openOperations = theirs ? () => 0 : countOperations(client)
    await connectOrClose(client, !theirs)
    const db = client.db(config.dbName)
    return { client, db, driver, ours: !theirs, monitored: !theirs && monitored, openOperations }
  } catch (error) {
    throw connectionFailed(config, error, causes)
  }
}

/**
 * What this version of the driver can't read, it says before it connects.
 * @param {Driver} driver
 * @param {Wanted} wanted
 */
function makeClient(driver, { config, appName, monitored, causes }) {
  try {
    return new driver.MongoClient(config.uri, clientOptions(config, appName, monitored))
  } catch (error) {
    const { message } = describeThrown(error, causes)
    throw new ConfigInvalidError(
      `The MongoDB driver of this app does not take uri and mongoClientOptions: ${message}`,
      {
        context: { cause: message, uri: redactUri(config.uri) },
        hint: 'Change them, or the version of the mongodb package',
        cause: error,
      },
    )
  }
}

/**
 * @param {MongoClient} client
 * @param {boolean} ours
 */
async function connectOrClose(client, ours) {
  try {
    await client.connect()
    // Handshakes are never compressed: a package that is missing for it shows in the first command.
    const compressed = ours && client.options.compressors.some((name) => name !== 'none')
    if (compressed) await client.db('admin').command({ ping: 1 })
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
 * @param {Readonly<MmkConfig>} config
 * @param {string} appName
 * @param {boolean} monitored
 * @returns {MongoClientOptions}
 */
function clientOptions({ uri, mongoClientOptions = {} }, appName, monitored) {
  // The driver takes names in any case, and of two spellings the later.
  const theirs = Object.fromEntries(
    Object.entries(mongoClientOptions).filter(([name]) => name.toLowerCase() !== 'appname'),
  )
  /** @param {string} name */
  const timeout = (name) => {
    const set = new RegExp(`[?&]${name}=`, 'i').test(uri)
    return set ? {} : { [name]: CONNECT_TIMEOUT_MS }
  }
  return {
    ...timeout('serverSelectionTimeoutMS'),
    ...timeout('connectTimeoutMS'),
    ...theirs,
    ...(monitored && { monitorCommands: true }),
    appName,
  }
}

/**
 * @param {Readonly<MmkConfig>} config
 * @param {unknown} error
 * @param {Causes} causes
 */
function connectionFailed({ uri, dbName }, error, causes) {
  const { name, message } = describeThrown(error, causes)
  if (name === 'MongoMissingDependencyError') {
    return new DependencyMissingError(
      `The MongoDB driver of this app lacks a package: ${message}`,
      {
        context: { cause: message },
        cause: error,
      },
    )
  }
  const reason = redact(message)
  return new ConnectionFailedError(`Could not connect to MongoDB: ${reason}`, {
    context: { cause: reason, uri: redactUri(uri), dbName },
    hint: 'Check that the server runs, and the host, port and credentials in the URI',
    cause: error,
  })
}
