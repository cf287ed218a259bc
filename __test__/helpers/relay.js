/**
 * A way to a server, on loopback, for those who want to hear or to spoil what goes over it.
 */
import { connect, createServer } from 'node:net'

/**
 * @typedef {import('node:net').Socket} Socket
 *
 * @param {import('node:test').TestContext} t it ends with this test
 * @param {string} target a server's URI
 * @param {(near: Socket, far: Socket) => void} carry passes on what comes from either side
 * @returns {Promise<{ uri: string, sockets: Set<Socket> }>} the URI names that server alone
 */
export async function startRelay(t, target, carry) {
  const { hostname, port } = new URL(target)
  /** @type {Set<Socket>} */
  const sockets = new Set()
  const server = createServer((near) => {
    const far = connect({ host: hostname, port: Number(port) })
    tie(near, far, sockets)
    carry(near, far)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { uri: `mongodb://127.0.0.1:${address.port}/?directConnection=true`, sockets }
}

/**
 * Two sockets end together.
 * @param {Socket} near
 * @param {Socket} far
 * @param {Set<Socket>} sockets
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
