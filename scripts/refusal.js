/**
 * What a server says that computes nothing: update pipelines it refuses, as Amazon DocumentDB does, and
 * expressions in filters and projections. What the real DocumentDB refuses beyond that it can't tell.
 */
import { BSON } from 'mongodb'
import { commandOf, OP_CODE, OP_MSG, REQUEST_ID, RESPONSE_TO } from './wire-messages.js'

/** @import { Document } from 'mongodb' */

/**
 * @param {Buffer} message to the server
 * @returns {{ command: string, reply: Buffer } | null} the refused command, such as `findAndModify
 *   _mmk_locks`, and the message that answers it; `null` when there is nothing to refuse
 */
export function refusalOf(message) {
  const command = commandOf(message)
  const refusal = command && judged(command)
  if (!refusal) return null
  const name = Object.entries(command)[0]?.join(' ') ?? ''
  return { command: name, reply: replyTo(message.readInt32LE(REQUEST_ID), refusal) }
}

/** @param {Document} command @returns {Document | null} */
function judged(command) {
  const updates = [command.update, ...statements(command).map(({ u }) => u)]
  if (updates.some(Array.isArray)) {
    // In the words that were seen of it.
    const errmsg = 'Failed to parse update: field must be of BSON type object'
    return { ok: 0, code: 9, codeName: 'FailedToParse', errmsg }
  }
  const filters = [command.filter, command.query, ...statements(command).map(({ q }) => q)]
  const computed = Object.values(command.projection ?? command.fields ?? {}).some(isExpression)
  if (computed || filters.some((filter) => filter && '$expr' in filter)) {
    return { ok: 0, code: 303, codeName: 'UnsupportedFeature', errmsg: 'Feature not supported' }
  }
  return null
}

/** @param {Document} command @returns {Document[]} */
const statements = ({ updates = [], deletes = [] }) => [...updates, ...deletes]

/** @param {unknown} value */
const isExpression = (value) => typeof value === 'object' || typeof value === 'string'

/** @param {number} request @param {Document} document */
function replyTo(request, document) {
  const body = BSON.serialize(document)
  const head = Buffer.alloc(HEAD)
  head.writeInt32LE(HEAD + body.length, 0)
  head.writeInt32LE(request, RESPONSE_TO)
  head.writeInt32LE(OP_MSG, OP_CODE)
  return Buffer.concat([head, body])
}

/** Header, flags, and the kind of the one section: 0, a document. */
const HEAD = 16 + 4 + 1
