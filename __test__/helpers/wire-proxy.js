/**
 * A network that knows what it carries: a proxy before a server, on loopback, that can hold back one
 * command before the server gets it, or its reply when the command has been carried out.
 *
 * It reads the wire protocol as far as that needs it: the messages of drivers that were told of no
 * compression. What it does not understand it passes on unread.
 */

import { commandOf, onMessages, REQUEST_ID, RESPONSE_TO } from '../../scripts/wire-messages.js'
import { startRelay } from './relay.js'

/** @import { Command } from '../../scripts/wire-messages.js' */

/**
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
  /** @type {Set<Hold>} */
  const holds = new Set()
  const { uri } = await startRelay(t, target, (near, far) => carry(near, far, holds))
  return {
    uri,
    hold: (when, matches) =>
      new Promise((done) => {
        holds.add({ when, matches, done })
      }),
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
