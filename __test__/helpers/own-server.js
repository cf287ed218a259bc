/**
 * A server that one test has for itself, to freeze it, or to make it a set of three.
 */
import { startMongod } from '../../scripts/mongod.js'
import { leaveServer } from './database.js'

/**
 * @param {import('node:test').TestContext} t it is stopped when this test ends
 * @param {Parameters<typeof startMongod>[0]} [options]
 */
export async function ownServer(t, options) {
  const server = await startMongod(options)
  /** URIs of the single members. */
  const direct = server.members.map(({ port }) => {
    return `mongodb://127.0.0.1:${port}/?directConnection=true`
  })
  t.after(async () => {
    for (const uri of [server.uri, ...direct]) await leaveServer(uri)
    await server.stop()
  })
  return { ...server, direct }
}
