/**
 * A network that knows what it carries: a proxy before a server, on loopback, that can hold back one
 * command before the server gets it, or its reply when the command has been carried out.
 *
 * It reads the wire protocol as far as that needs it: the messages of drivers that were told of no
 * compression. What it does not understand it passes on unread.
 */
import { connect, createServer } from 'node:net'
import { BSON } from 'mongodb'

/**
 * @typedef {import('mongodb').Document} Command as it was sent, with the documents that came beside it
 * @typedef {(command: Command, appName: string) => boolean} Matcher `appName` is the client's own
 *
 * @typedef {object} Held
 * @property {Command} command
 * @property {string} appName
 * @property {() => void} release lets the command, or its reply, go on its way
 *
 * @typedef {object} WireProxy
 * @property {string} uri names the server through the proxy, and that server alone
 * @property {(when: 'before' | 'after', matches: Matcher) => Promise<Held>} hold resolves when the next
 *   command that matches is on its way, or when its reply is
 */

/** @typedef {{ when: 'before' | 'after', matches: Matcher, done: (held: Held) => void }} Hold */

/**
 * @param {import('node:test').TestContext} t it ends with this test
 * @param {string} target a server's URI
 * @returns {Promise<WireProxy>}
 */
export async function startWireProxy(t, target) {
  const { hostname, port } = new URL(target)
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set()
  /** @type {Set<Hold>} */
  const holds = new Set()
  const server = createServer((near) => {
    const far = connect({ host: hostname, port: Number(port) })
    tie(near, far, sockets)
    carry(near, far, holds)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    uri: `mongodb://127.0.0.1:${address.port}/?directConnection=true`,
    hold: (when, matches) =>
      new Promise((done) => {
        holds.add({ when, matches, done })
      }),
  }
}

/**
 * Two sockets end together.
 * @param {import('node:net').Socket} near
 * @param {import('node:net').Socket} far
 * @param {Set<import('node:net').Socket>} sockets
 */
function tie(near, far, sockets) {
  for (const [one, other] of [
    [near, far],
    [far, near],
  ]) {
    sockets.add(one)
    one.on('error', () => {})
    one.on('close', () => {
      sockets.delete(one)
      other.destroy()
    })
  }
}

/**
 * @param {import('node:net').Socket} near
 * @param {import('node:net').Socket} far
 * @param {Set<Hold>} holds
 */
function carry(near, far, holds) {
  let appName = ''
  /** @type {Map<number, { hold: Hold, command: Command }>} by the request whose reply is waited for */
  const awaited = new Map()
  onMessages(near, (message) => {
    const pass = () => void far.write(message)
    const command = commandOf(message)
    appName = command?.client?.application?.name ?? appName
    const hold = command && [...holds].find(({ matches }) => matches(command, appName))
    if (!command || !hold) return pass()
    holds.delete(hold)
    if (hold.when === 'before') return hold.done({ command, appName, release: pass })
    awaited.set(message.readInt32LE(REQUEST_ID), { hold, command })
    pass()
  })
  onMessages(far, (message) => {
    const pass = () => void near.write(message)
    const asked = awaited.get(message.readInt32LE(RESPONSE_TO))
    if (!asked) return pass()
    awaited.delete(message.readInt32LE(RESPONSE_TO))
    asked.hold.done({ command: asked.command, appName, release: pass })
  })
}

/**
 * Cuts a stream into messages.
 * @param {import('node:net').Socket} socket
 * @param {(message: Buffer) => void} hear
 */
function onMessages(socket, hear) {
  /** @type {Buffer} */
  let rest = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= HEADER && rest.length >= rest.readInt32LE(0)) {
      const length = rest.readInt32LE(0)
      if (length < HEADER) return void socket.destroy()
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
function commandOf(message) {
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
const REQUEST_ID = 4
const RESPONSE_TO = 8
const OP_CODE = 12
const HEADER = 16
const OP_QUERY = 2004
const OP_MSG = 2013
const CHECKSUM_PRESENT = 1
