/**
 * A server that computes nothing: a proxy before a real one, on loopback, that refuses update
 * pipelines, as Amazon DocumentDB does, and expressions in filters and projections. It sees what is
 * sent; what the real DocumentDB does beyond that it can't tell.
 */
import { BSON } from 'mongodb'
import { startRelay } from './relay.js'
import { commandOf, OP_CODE, OP_MSG, onMessages, REQUEST_ID, RESPONSE_TO } from './wire-messages.js'

/** @import { Document } from 'mongodb' */

/**
 * @param {import('node:test').TestContext} t it ends with this test
 * @param {string} target a server's URI
 * @returns {Promise<{ uri: string, refused: string[] }>} the commands that were refused, such as
 *   `findAndModify _mmk_locks`
 */
export async function startPlainServer(t, target) {
  /** @type {string[]} */
  const refused = []
  const { uri } = await startRelay(t, target, (near, far) => {
    onMessages(near, (message) => {
      const command = commandOf(message)
      const refusal = command && refusalOf(command)
      if (!refusal) return void far.write(message)
      refused.push(Object.entries(command)[0]?.join(' ') ?? '')
      near.write(reply(message.readInt32LE(REQUEST_ID), refusal))
    })
    far.pipe(near)
  })
  return { uri, refused }
}

/** @param {Document} command @returns {Document | null} */
function refusalOf(command) {
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

/** @param {number} to @param {Document} document */
function reply(to, document) {
  const body = BSON.serialize(document)
  const head = Buffer.alloc(HEAD)
  head.writeInt32LE(HEAD + body.length, 0)
  head.writeInt32LE(to, RESPONSE_TO)
  head.writeInt32LE(OP_MSG, OP_CODE)
  return Buffer.concat([head, body])
}

/** Header, flags, and the kind of the one section: 0, a document. */
const HEAD = 16 + 4 + 1
