/**
 * What the server was asked: its own record of the commands on one database.
 */

/**
 * From now on the server records every command on this database.
 * @param {import('./database.js').Database} database
 */
export async function startProfile({ db }) {
  await db.command({ profile: 2 })
}

/**
 * @param {import('./database.js').Database} database
 * @param {import('mongodb').Document} [filter]
 * @returns {Promise<import('mongodb').Document[]>} the recorded commands, oldest first
 */
export function profiled({ db, name }, filter = {}) {
  const ours = { ns: { $ne: `${name}.system.profile` }, ...filter }
  return db.collection('system.profile').find(ours).sort({ ts: 1 }).toArray()
}

/** @param {import('./database.js').Database} database */
export async function endProfile({ db }) {
  await db.command({ profile: 0 })
}
