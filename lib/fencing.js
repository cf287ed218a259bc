/**
 * The core's conditional commands, run through the Node driver: is an entry as it was, has no later
 * run begun?
 *
 * Promises: a precondition that does not hold is `false`, never an error; an error says nothing about
 * it. Whether the transaction around it commits is the caller's.
 */
import { InvalidArgumentError, LockLostError } from './errors.js'

/** @import { ClientSession } from 'mongodb' */
/** @import { BodyCall } from './contract.d.ts' */
/** @import { Connection } from './driver.js' */

/** The server's code for a document that another transaction has changed since ours began. */
const WRITE_CONFLICT = 112

/**
 * Runs one of the core's conditional commands: did its precondition still hold?
 * @param {Uint8Array} command
 * @param {ClientSession | undefined} session
 * @param {Connection} connection
 */
export async function matched(command, session, { db, driver }) {
  const document = driver.BSON.deserialize(command, { promoteValues: false })
  const reply = await db.command(document, session ? { session } : {})
  const [failed] = reply.writeErrors ?? []
  if (failed) {
    const { code, errmsg } = failed
    throw Object.assign(new Error(errmsg), { code, errorLabels: reply.errorLabels ?? [] })
  }
  return Number(reply.n) === 1
}

/**
 * Has no later run begun? In a transaction, a run that begins meanwhile shows as a write conflict on
 * the fence, and so does another transaction of our own: asking again outside tells which it was.
 * @param {Uint8Array} fence
 * @param {ClientSession} session
 * @param {Connection} connection
 */
export async function isLatest(fence, session, connection) {
  try {
    return await matched(fence, session, connection)
  } catch (/** @type {any} */ error) {
    if (error?.code !== WRITE_CONFLICT) throw error
    if (await matched(fence, undefined, connection)) throw error
    return false
  }
}

/**
 * What lets a body's own transactions fail once a later run has begun.
 * @param {BodyCall} call
 * @param {Connection} connection
 */
export function fencingFields({ fence, fencingToken }, connection) {
  return {
    fencingToken,
    /** @param {ClientSession} session */
    fence: async (session) => {
      if (!session?.inTransaction()) {
        throw new InvalidArgumentError('fence() needs a session with a transaction that is open')
      }
      if (fence && !(await isLatest(fence, session, connection))) {
        throw new LockLostError('A later run has begun: this transaction must not commit')
      }
    },
  }
}
