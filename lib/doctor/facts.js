/**
 * What `mmk doctor` asks the server, through the Node driver. It only reads.
 *
 * Promises: a read that the user may not make is `null`, not a failure; every read is bounded in time.
 */

/** @import { Document } from 'mongodb' */
/** @import { MmkConfig } from '../../index.d.ts' */
/** @import { Connection } from '../driver.js' */

/**
 * @typedef {object} ServerFacts
 * @property {string | null} version such as `6.0.27`
 * @property {'standalone' | 'replica set' | 'sharded cluster'} topology
 * @property {string | null} electionId of the primary; a standalone and a `mongos` have none
 * @property {number} clockOffsetMs how far the server's clock is ahead of ours
 * @property {Document[] | null} privileges of the user; `null`: nobody has logged in
 * @property {Document[] | null} locks the documents of the lock collection
 * @property {Document[] | null} entries those of the changelog, every namespace's, without checksums
 * @property {Document[] | null} indexes of the changelog
 */

/** No answer takes nearly as long from a server that is well. */
const PATIENCE_MS = 5000
/** Codes of "not authorised" and "no such collection". */
const UNAUTHORIZED = 13
const NAMESPACE_NOT_FOUND = 26

/**
 * @param {Connection} connection
 * @param {Readonly<MmkConfig>} config
 * @returns {Promise<ServerFacts>}
 */
export async function serverFacts({ client, db }, { migrationsCollection, lockCollection }) {
  const admin = client.db('admin')
  const asked = Date.now()
  const hello = await admin.command({ hello: 1 })
  const midway = (asked + Date.now()) / 2
  const bounded = { maxTimeMS: PATIENCE_MS }
  const status = await admin.command({ connectionStatus: 1, showPrivileges: true })
  const changelog = db.collection(migrationsCollection)
  const projection = { name: 1, namespace: 1, status: 1, version: 1, batch: 1 }
  return {
    version: await allowed(async () => (await admin.command({ buildInfo: 1 })).version),
    topology: topologyOf(hello),
    electionId: hello.electionId === undefined ? null : String(hello.electionId),
    clockOffsetMs: Math.round(hello.localTime.getTime() - midway),
    privileges: privilegesOf(status),
    locks: await allowed(() =>
      db.collection(lockCollection).find({}, bounded).limit(100).toArray(),
    ),
    entries: await allowed(() => changelog.find({}, { projection, ...bounded }).toArray()),
    indexes: await allowed(() => changelog.listIndexes(bounded).toArray(), []),
  }
}

/**
 * @template T
 * @param {() => Promise<T>} read
 * @param {T | null} [absent] the answer where there is no such collection
 * @returns {Promise<T | null>}
 */
async function allowed(read, absent = null) {
  try {
    return await read()
  } catch (/** @type {any} */ error) {
    if (error?.code === NAMESPACE_NOT_FOUND) return absent
    if (error?.code === UNAUTHORIZED) return null
    throw error
  }
}

/** @param {Document} hello @returns {ServerFacts['topology']} */
function topologyOf({ setName, msg }) {
  if (msg === 'isdbgrid') return 'sharded cluster'
  return setName ? 'replica set' : 'standalone'
}

/** @param {Document} status */
function privilegesOf({ authInfo }) {
  return authInfo.authenticatedUsers.length > 0 ? authInfo.authenticatedUserPrivileges : null
}
