/**
 * What a body does on the client that we made for it, as the driver's own events tell.
 *
 * Promises: every write that goes outside the watched transaction is told, the first error that ended
 * that transaction is kept, and so is what ended it through a command. It sees nothing of a client that is not ours, and can't tell what a
 * body writes through one.
 */
import { hasLabel } from './causes.js'

/** @import { ClientSession, CommandFailedEvent, CommandStartedEvent, CommandSucceededEvent, Document, MongoClient } from 'mongodb' */

/** @typedef {{ command: string, collection: string }} Write */

/** By their lower-case names: the server takes some of them in either case. */
const WRITES = new Set(
  (
    'insert update delete findandmodify bulkwrite create createindexes collmod converttocapped ' +
    'drop dropdatabase dropindexes renamecollection'
  ).split(' '),
)
/** How a transaction ends says nothing about what ended it. */
const ENDINGS = ['commitTransaction', 'abortTransaction']
/** Of an error's message, this much is told in a hint. */
const MAX_MESSAGE = 500
const TRANSIENT = 'TransientTransactionError'
const UNKNOWN = 'UnknownTransactionCommitResult'

/**
 * Counts a client's operations from when they ask for a connection until they give it back.
 * @param {MongoClient} client
 * @returns {() => number} how many are under way
 */
export function countOperations(client) {
  let open = 0
  client.on('connectionCheckOutStarted', () => {
    open += 1
  })
  const ended = () => {
    open -= 1
  }
  client.on('connectionCheckOutFailed', ended)
  client.on('connectionCheckedIn', ended)
  return () => open
}

/**
 * Watches one attempt at a transaction.
 * @param {MongoClient} client made with `monitorCommands`
 * @param {ClientSession} session
 * @param {(write: Write) => void} onOutside
 */
export function watchTransaction(client, session, onOutside) {
  /** @type {Set<number>} the requests under way in the transaction */
  const inside = new Set()
  /** @type {{ command: string, message: string } | null} */
  let failure = null
  const ended = { committed: false, aborted: false }

  /** @param {CommandStartedEvent} event */
  const started = ({ command, commandName, databaseName, requestId }) => {
    if (isInside(command, session)) inside.add(requestId)
    else if (isWrite(commandName, command)) {
      onOutside({ command: commandName, collection: target(commandName, command) ?? databaseName })
    }
  }
  /** @param {string} command @param {string} message */
  const note = (command, message) => {
    if (!ENDINGS.includes(command)) failure ??= { command, message: message.slice(0, MAX_MESSAGE) }
  }
  /** @param {CommandFailedEvent} event */
  const failed = ({ commandName, failure: error, requestId }) => {
    if (!inside.delete(requestId) || hasLabel(error, TRANSIENT)) return
    // Nobody can tell: then it is safer to look for what it may have committed.
    if (commandName === 'commitTransaction' && hasLabel(error, UNKNOWN)) ended.committed = true
    note(commandName, error.message)
  }
  /** @param {CommandSucceededEvent} event */
  const succeeded = ({ commandName, reply, requestId }) => {
    if (!inside.delete(requestId)) return
    if (commandName === 'commitTransaction') ended.committed = true
    if (commandName === 'abortTransaction') ended.aborted = true
    const message = writeError(reply)
    if (message !== null) note(commandName, message)
  }
  client.on('commandStarted', started)
  client.on('commandFailed', failed)
  client.on('commandSucceeded', succeeded)
  return {
    /** The first error inside that no new attempt would heal. */
    failure: () => failure,
    /** Which commands have ended it, as long as it is watched. */
    ended: () => ended,
    stop: () => {
      client.off('commandStarted', started)
      client.off('commandFailed', failed)
      client.off('commandSucceeded', succeeded)
    },
  }
}

/**
 * @param {Document} command
 * @param {ClientSession} session
 */
function isInside({ lsid, autocommit }, session) {
  const [theirs, ours] = [lsid?.id?.buffer, session.id?.id.buffer]
  if (autocommit !== false || !theirs || !ours) return false
  return Buffer.compare(theirs, ours) === 0
}

/**
 * @param {string} name
 * @param {Document} command
 */
function isWrite(name, command) {
  if (name === 'aggregate') return outputOf(command) !== undefined
  return name === 'mapReduce' ? command.out?.inline === undefined : WRITES.has(name.toLowerCase())
}

/**
 * Where an aggregation writes to.
 * @param {Document} command
 */
function outputOf({ pipeline }) {
  const last = pipeline?.at(-1)
  return last?.$out ?? last?.$merge?.into ?? last?.$merge
}

/**
 * @param {string} name
 * @param {Document} command
 * @returns {string | null} the collection, as far as the command names one
 */
function target(name, command) {
  const named =
    name === 'aggregate' ? outputOf(command) : (command.nsInfo?.[0]?.ns ?? command[name])
  const collection = named?.coll ?? named
  return typeof collection === 'string' ? collection : null
}

/**
 * A write that failed inside a reply that says "ok".
 * @param {any} reply
 * @returns {string | null}
 */
function writeError(reply) {
  const first = reply?.writeErrors?.[0]
  if (first) return String(first.errmsg)
  const inBulk = reply?.nErrors > 0 ? reply.cursor?.firstBatch : undefined
  return inBulk?.find((/** @type {any} */ each) => each.ok !== 1)?.errmsg ?? null
}
