/**
 * `mmk up`, killed inside the transaction that raises the fence. It stays open on the server for a
 * minute, and all the while it would keep the lock document from everybody.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as sent from '../helpers/sent.js'
import { crash } from './story.js'
import { createWorld, killAt } from './world.js'

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

test('a run that was killed while it raised the fence', { concurrency: 3 }, async (t) => {
  const tests = points.map((point) => t.test(`killed ${point.name}: arm`, (t) => crash(t, point)))
  await Promise.all(tests)
})

test('an operator unlocks what a run that was killed while it raised the fence has left', async (t) => {
  const world = await createWorld(t)
  await killAt(t, world, { after: sent.armNote })

  const unlocked = await world.mmk(['unlock', '--yes']).ended
  assert.equal(unlocked.code, 0, unlocked.stdout + unlocked.stderr)
  assert.equal(await world.database.lock(), null)
  assert.equal((await world.mmk(['up']).ended).code, 0)
})
