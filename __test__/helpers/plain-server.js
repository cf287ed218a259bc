/**
 * A server that computes nothing: a proxy before a real one, on loopback, that refuses what
 * `scripts/refusal.js` says.
 */
import { refusalOf } from '../../scripts/refusal.js'
import { onMessages } from '../../scripts/wire-messages.js'
import { startRelay } from './relay.js'

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
      const refusal = refusalOf(message)
      if (!refusal) return void far.write(message)
      refused.push(refusal.command)
      near.write(refusal.reply)
    })
    far.pipe(near)
  })
  return { uri, refused }
}
