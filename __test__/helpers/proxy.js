/**
 * A network that a test can spoil: a TCP proxy before a server, on loopback.
 *
 * A cut is silent, as a lost route is: connections stay open, nothing gets through, and what was sent
 * meanwhile arrives when the cut is healed. That is harder on a lock than a reset, which is noticed.
 */
import { startRelay } from './relay.js'

/**
 * @typedef {object} Proxy
 * @property {string} uri names the server through the proxy, and that server alone
 * @property {() => void} cut
 * @property {() => void} heal
 * @property {(...words: string[]) => Promise<void>} dropReplyTo the server gets the next request that
 *   contains all these words, the answer is lost and its connection broken; resolves when that happened
 */

/** @typedef {{ words: string[], done: () => void }} Drop */
/** @typedef {{ cut: boolean, drop: Drop | null }} State */

/**
 * @param {import('node:test').TestContext} t it ends with this test
 * @param {string} target a server's URI
 * @returns {Promise<Proxy>}
 */
export async function startProxy(t, target) {
  /** @type {State} */
  const state = { cut: false, drop: null }
  const { uri, sockets } = await startRelay(t, target, (near, far) => {
    for (const socket of [near, far]) if (state.cut) socket.pause()
    carry(near, far, state)
  })
  const pause = (/** @type {boolean} */ cut) => {
    state.cut = cut
    for (const socket of sockets) cut ? socket.pause() : socket.resume()
  }
  return {
    uri,
    cut: () => pause(true),
    heal: () => pause(false),
    dropReplyTo: (...words) =>
      new Promise((resolve) => {
        state.drop = { words, done: () => resolve() }
      }),
  }
}

/**
 * @param {import('node:net').Socket} near
 * @param {import('node:net').Socket} far
 * @param {State} state
 */
function carry(near, far, state) {
  /** @type {Drop | null} */
  let dropping = null
  near.on('data', (chunk) => {
    if (state.drop?.words.every((word) => chunk.includes(word))) {
      dropping = state.drop
      state.drop = null
    }
    far.write(chunk)
  })
  far.on('data', (chunk) => {
    if (dropping === null) return void near.write(chunk)
    dropping.done()
    near.destroy()
    far.destroy()
  })
}
