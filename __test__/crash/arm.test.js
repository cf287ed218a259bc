/**
 * `mmk up`, killed inside the transaction that raises the fence. It stays open until the server ends
 * it, and until then it keeps the lock document from everybody: for a minute, unless the server was
 * told otherwise, as here.
 */
import { test } from 'node:test'
import { ownServer } from '../helpers/own-server.js'
import * as sent from '../helpers/sent.js'
import { crash } from './story.js'

/** @import { Point } from './story.js' */

/** @type {Pick<Point, 'states' | 'ups'>} */
const untouched = { states: ['pending', 'pending', 'pending'], ups: [0, 0, 0] }

/** @type {Point[]} */
const points = [
  { name: 'after it has prolonged the lease', at: { after: sent.armLease }, ...untouched },
  { name: 'before it raises the fence', at: { before: sent.armFence }, ...untouched },
  { name: 'after it has raised the fence', at: { after: sent.armFence }, ...untouched },
  { name: 'before it notes the token', at: { before: sent.armNote }, ...untouched },
  { name: 'after it has noted the token', at: { after: sent.armNote }, ...untouched },
  { name: 'before it commits', at: { before: sent.armCommit }, ...untouched },
]

test('a run that was killed while it raised the fence', { concurrency: 6 }, async (t) => {
  const server = await ownServer(t, { parameters: ['transactionLifetimeLimitSeconds=2'] })
  const tests = points.map((point) => {
    return t.test(`killed ${point.name}: arm`, (t) => crash(t, point, server.uri))
  })
  await Promise.all(tests)
})
