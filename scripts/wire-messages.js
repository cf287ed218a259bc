/**
 * MongoDB's wire protocol, as far as a listener needs it: the messages of drivers that were told of no
 * compression.
 */
import { BSON } from 'mongodb'

/** @typedef {import('mongodb').Document} Command as it was sent, with the documents that came beside it */

/**
 * Cuts a stream into messages.
 * @param {import('node:stream').Readable} stream
 * @param {(message: Buffer) => void} hear
 */
export function onMessages(stream, hear) {
  /** @type {Buffer} */
  let rest = Buffer.alloc(0)
  stream.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= HEADER && rest.length >= rest.readInt32LE(0)) {
      const length = rest.readInt32LE(0)
      if (length < HEADER) return void stream.destroy()
      const message = rest.subarray(0, length)
      rest = rest.subarray(length)
      hear(message)
    }
  })
}

/**
 * @param {Buffer} message
 * @returns {Command | null} `null` when it is none that we can read
 */
export function commandOf(message) {
  switch (message.readInt32LE(OP_CODE)) {
    case OP_MSG:
      return sections(message)
    case OP_QUERY: {
      // The first greeting of a connection. Before the document stand flags, a name and two numbers.
      const name = message.indexOf(0, HEADER + 4)
      return BSON.deserialize(message.subarray(name + 1 + 8))
    }
    default:
      return null
  }
}

/**
 * The body of an OP_MSG, with its sequences of documents put where they would stand in one document.
 * @param {Buffer} message
 * @returns {Command}
 */
function sections(message) {
  const end = message.length - (message.readInt32LE(HEADER) & CHECKSUM_PRESENT ? 4 : 0)
  /** @type {Command} */
  let command = {}
  for (let at = HEADER + 4; at < end; ) {
    const sequence = message[at] === 1
    at += 1
    const size = message.readInt32LE(at)
    const section = message.subarray(at, at + size)
    at += size
    if (sequence) {
      const name = section.indexOf(0, 4)
      command[section.toString('utf8', 4, name)] = documents(section.subarray(name + 1))
    } else {
      command = { ...BSON.deserialize(section), ...command }
    }
  }
  return command
}

/** @param {Buffer} bytes */
function documents(bytes) {
  const found = []
  for (let at = 0; at < bytes.length; at += bytes.readInt32LE(at)) {
    found.push(BSON.deserialize(bytes.subarray(at, at + bytes.readInt32LE(at))))
  }
  return found
}

/** Offsets and numbers of MongoDB's wire protocol. */
export const REQUEST_ID = 4
export const RESPONSE_TO = 8
export const OP_CODE = 12
const HEADER = 16
const OP_QUERY = 2004
export const OP_MSG = 2013
const CHECKSUM_PRESENT = 1
