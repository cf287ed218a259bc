/**
 * Do the bodies' client and the core's connection lead to the same deployment? They are told apart in
 * the configuration (`lockUri`, `client`, `mongoose`), and a lock elsewhere protects nothing.
 *
 * Promises: two servers that are known to differ are refused. Routers of one cluster can't be told
 * from those of another, nor servers older than 4.4 by more than the name of their set.
 */
import { ConfigInvalidError } from './errors.js'

/** @import { Db } from 'mongodb' */
/** @import { Server } from './contract.d.ts' */

/** An election between the two questions looks like a difference; a second look settles that. */
const LOOKS = 2

/**
 * @param {Db} db of the bodies' client
 * @param {() => Promise<Server>} ask what the core's connection finds
 */
export async function refuseOtherDeployment(db, ask) {
  for (let look = 1; ; look += 1) {
    const [mine, theirs] = [await serverOf(db), await ask()]
    if (isSame(mine, theirs)) return
    if (look === LOOKS) throw otherDeployment(mine, theirs)
  }
}

/** @param {Db} db @returns {Promise<Server>} */
async function serverOf(db) {
  const reply = await db.command({ hello: 1 }, { readPreference: 'primary' })
  const router = reply.msg === 'isdbgrid'
  const setName = reply.setName ?? null
  const process = router ? null : (reply.topologyVersion?.processId?.toHexString() ?? null)
  return { transactions: router || setName !== null, setName, process }
}

/** @param {Server} one @param {Server} other */
function isSame(one, other) {
  if (one.setName !== other.setName || one.transactions !== other.transactions) return false
  return one.process === null || other.process === null || one.process === other.process
}

/** @param {Server} mine @param {Server} theirs */
function otherDeployment(mine, theirs) {
  const [ours, locks] = [mine, theirs].map(({ setName, transactions }) => {
    if (setName !== null) return `replica set "${setName}"`
    return transactions ? 'a sharded cluster' : 'a server on its own'
  })
  return new ConfigInvalidError(
    `The lock's connection leads to another deployment (${locks}) than the one that migrations run on (${ours})`,
    {
      context: { migrations: mine, lock: theirs },
      hint: 'Let uri, lockUri and your own client name the same servers',
    },
  )
}
