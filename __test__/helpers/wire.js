/**
 * Every command that goes to a server, read off the wire: a proxy on loopback that understands the
 * protocol as far as that takes. The server's profiler sees one database and counts statements.
 */

import { commandOf, onMessages } from '../../scripts/wire-messages.js'
import { startRelay } from './relay.js'

/**
 * @typedef {object} Wire
 * @property {string} uri names the server through the proxy, and that server alone
 * @property {(appName: RegExp) => string[]} sentBy the commands of all connections with such an
 *   appName, such as `find _mmk_migrations`, in order, since the last look at them
 */

/**
 * @param {import('node:test').TestContext} t it ends with this test
 * @param {string} target a server's URI
 * @returns {Promise<Wire>}
 */
export async function startWire(t, target) {
  /** @type {{ appName: string, command: string }[]} */
  const sent = []
  const { uri } = await startRelay(t, target, (near, far) => {
    listen(near, sent)
    near.pipe(far)
    far.pipe(near)
  })
  return {
    uri,
    sentBy: (appName) => {
      const theirs = sent.filter((each) => appName.test(each.appName))
      for (const each of theirs) sent.splice(sent.indexOf(each), 1)
      return theirs.map(({ command }) => command)
    },
  }
}

/**
 * Reads one connection.
 *
 * @param {import('node:net').Socket} near
 * @param {{ appName: string, command: string }[]} sent grows with what it reads
 */
function listen(near, sent) {
  let appName = ''
  onMessages(near, (message) => {
    const command = commandOf(message)
    appName = command?.client?.application?.name ?? appName
    if (command && !isOfTheDriver(command)) sent.push({ appName, command: described(command) })
  })
}

/**
 * What drivers send by themselves, to get to know a server and to take their leave.
 *
 * @param {import('mongodb').Document} command
 */
function isOfTheDriver(command) {
  const name = Object.keys(command)[0] ?? ''
  const greeting = /^(hello|ismaster)$/i.test(name)
  // Our own hello asks the database that is migrated.
  return name === 'endSessions' || (greeting && /^(admin|undefined)$/.test(`${command.$db}`))
}

/** @param {import('mongodb').Document} command */
function described(command) {
  const [name, target] = Object.entries(command)[0] ?? []
  if (name === 'aggregate') return `${name} ${Object.keys(command.pipeline[0])[0]}`
  return typeof target === 'string' ? `${name} ${target}` : `${name}`
}
