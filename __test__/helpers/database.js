/**
 * A database of its own for each test, and a look at the raw documents in it: what the tests assert
 * must not come through the code under test.
 */
import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { replicaSet } from './servers.js'

/**
 * @typedef {object} Database
 * @property {string} uri
 * @property {string} name
 * @property {{ MMK_URI: string, MMK_DB: string }} env names it to a child process
 * @property {{ uri: string, dbName: string }} config names it to the API
 * @property {import('mongodb').Db} db
 * @property {() => Promise<import('mongodb').Document | null>} lock the lock document
 * @property {() => Promise<import('mongodb').Document[]>} entries the changelog, by name
 * @property {(name: string) => Promise<import('mongodb').Document | null>} entry
 * @property {() => Promise<Date>} now the server's clock
 */

/**
 * @param {import('node:test').TestContext} t the database is dropped when this test ends
 * @param {string} [uri]
 * @returns {Promise<Database>}
 */
export async function freshDatabase(t, uri = replicaSet) {
  const name = `mmk_test_${randomUUID().slice(0, 8)}`
  const client = await new MongoClient(uri).connect()
  clients.set(uri, [...(clients.get(uri) ?? []), client])
  const db = client.db(name)
  t.after(async () => {
    if (!gone.has(uri)) await db.dropDatabase()
    await client.close()
  })
  const changelog = db.collection('_mmk_migrations')
  return {
    uri,
    name,
    env: { MMK_URI: uri, MMK_DB: name },
    config: { uri, dbName: name },
    db,
    lock: () => db.collection(lockCollection).findOne({ _id: lockId }),
    entries: () => changelog.find().sort({ name: 1 }).toArray(),
    entry: (file) => changelog.findOne({ name: file }),
    now: async () => (await db.command({ hello: 1 })).localTime,
  }
}

/**
 * A lock as another process would hold it, renewed just now, with a minute to go.
 *
 * @param {Database} database
 * @param {import('mongodb').Document} [fields] override or add
 * @returns {Promise<import('mongodb').Document>} the document as stored
 */
export async function holdLock(database, fields = {}) {
  const { localTime: now, electionId } = await database.db.command({ hello: 1 })
  const owner = randomUUID()
  const lock = {
    v: 2,
    host: 'deploy-a',
    pid: 16152,
    executedBy: 'asha',
    owner,
    leaseOwner: owner,
    acquiredAt: now,
    lockedAt: now,
    expiresAt: new Date(now.getTime() + 60_000),
    ttlMs: 60_000,
    beats: 0,
    ...(electionId ? { electionId } : {}),
    ...fields,
  }
  await database.db.collection(lockCollection).insertOne({ _id: lockId, ...lock })
  return lock
}

/**
 * To be called before a server stops that a test has for itself: hooks run in the order in which they
 * were made, and a client that finds nobody to take its leave of waits for half a minute.
 *
 * @param {string} uri
 */
export async function leaveServer(uri) {
  gone.add(uri)
  await Promise.all((clients.get(uri) ?? []).map((client) => client.close()))
}

/** URIs of servers that have been stopped. */
export const gone = new Set()

/** @type {Map<string, MongoClient[]>} by URI */
const clients = new Map()
const lockCollection = '_mmk_locks'
const lockId = /** @type {any} */ ('mmk_lock')
