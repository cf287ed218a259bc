/**
 * What the servers say happened: the oplog of the final primary, in the order of its commits, read
 * into facts that the checks understand. What was rolled back is not in it.
 */
import { updated } from './oplog.js'

/** @typedef {import('./oplog.js').Document} Document */

/**
 * @typedef {object} Fact
 * @property {'fence' | 'effect' | 'plain' | 'bulk' | 'lock' | 'entry'} kind
 * @property {number} wall when the primary of that time wrote it, in milliseconds since 1970
 * @property {string} id of the document; for `entry` with its collection
 * @property {Document | null} before
 * @property {Document | null} after
 */

/** @type {Readonly<Record<string, Fact['kind']>>} */
const kinds = { fenced: 'effect', plain: 'plain', bulk: 'bulk' }
const changelog = '_mmk_migrations'

/**
 * @param {import('mongodb').MongoClient} client of the primary
 * @param {string} dbName
 * @returns {Promise<Fact[]>}
 */
export async function readFacts(client, dbName) {
  const inDatabase = { ns: { $regex: `^${dbName}\\.` } }
  const inTransactions = { 'o.applyOps.ns': { $regex: `^${dbName}\\.` } }
  const entries = client
    .db('local')
    .collection('oplog.rs')
    .find({ $or: [inDatabase, inTransactions] })
    .sort({ $natural: 1 })
  const tale = beginTale(dbName)
  for await (const entry of entries) tale.tell(entry)
  return tale.facts
}

/**
 * Follows the documents of one database through oplog entries.
 * @param {string} dbName
 */
export function beginTale(dbName) {
  /** @type {Fact[]} */
  const facts = []
  /** @type {Map<string, Document>} */
  const documents = new Map()
  /** @param {Document} entry */
  const tell = (entry) => {
    const operations = entry.op === 'c' ? (entry.o.applyOps ?? []) : [entry]
    for (const operation of operations) {
      const collection = operation.ns?.startsWith(`${dbName}.`)
        ? operation.ns.slice(dbName.length + 1)
        : null
      if (collection === null || !'iud'.includes(operation.op)) continue
      const id = String((operation.o2 ?? operation.o)._id)
      const key = `${collection}/${id}`
      const before = documents.get(key) ?? null
      const after = afterOf(operation, before)
      if (after === null) documents.delete(key)
      else documents.set(key, after)
      const kind = kindOf(collection, id)
      if (kind) facts.push({ kind, wall: Number(entry.wall), id, before, after })
    }
  }
  return { facts, tell }
}

/** @param {Document} operation @param {Document | null} before */
function afterOf({ op, o, o2 }, before) {
  if (op === 'd') return null
  return op === 'i' ? o : { ...updated(before ?? {}, o), ...o2 }
}

/** @param {string} collection @param {string} id @returns {Fact['kind'] | null} */
function kindOf(collection, id) {
  if (collection === '_mmk_locks') return id === 'mmk_fence' ? 'fence' : 'lock'
  if (collection === changelog) return 'entry'
  return kinds[collection] ?? null
}
