/**
 * `mmk up`, killed anywhere in a transactional migration: its writes and its entry are there together
 * or not at all, and together exactly once in the end.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as sent from '../helpers/sent.js'
import { crash } from './story.js'
import { killAt, leaseIsOver, transactional } from './world.js'

/** @import { Point } from './story.js' */

const files = { '1.js': transactional('1.js') }

/** @type {Pick<Point, 'states' | 'ups' | 'files'>} */
const undone = { states: ['interrupted', 'pending', 'pending'], ups: [0, 0, 0], files }
/** @type {Pick<Point, 'states' | 'ups' | 'files'>} */
const done = { states: ['applied', 'pending', 'pending'], ups: [1, 0, 0], files }

/** @type {Point[]} */
const points = [
  { name: 'before its first write', at: { inside: '1.js: before its write of ups' }, ...undone },
  { name: 'before a write arrives', at: { before: sent.write }, ...undone },
  { name: 'after a write has arrived', at: { after: sent.write }, ...undone },
  { name: 'after its last write', at: { inside: '1.js: after its write of ups' }, ...undone },
  { name: 'between body and entry', at: { before: sent.settleInTransaction }, ...undone },
  {
    name: 'after the entry',
    at: { after: sent.settleInTransaction },
    ...undone,
    // Nothing of it can have stayed: there is nothing that a person must look at.
    heal: async ({ mmk }) => {
      const { code, stdout, stderr } = await mmk(['up'], { env: { MMK_ON_INTERRUPTED: 'stop' } })
        .ended
      assert.equal(code, 0, stdout + stderr)
    },
  },
  { name: 'before the fence is touched', at: { before: sent.touchFence }, ...undone },
  { name: 'between fence and commit', at: { after: sent.touchFence }, ...undone },
  { name: 'before the commit', at: { before: sent.commit }, ...undone },
  { name: 'when the commit’s reply is on its way', at: { after: sent.commit }, ...done },
]

/** A first run has left its transaction open, and this one clears it away. @type {Point[]} */
const clearingPoints = [
  { name: 'before it reads the register', at: { before: sent.readFence }, ...undone },
  { name: 'before it looks for what was left', at: { before: sent.lookForOperations }, ...undone },
  { name: 'before it ends what was left', at: { before: sent.endSession }, ...undone },
  { name: 'after it has ended what was left', at: { after: sent.endSession }, ...undone },
].map((point) => ({
  ...point,
  args: ['up', '--wait'],
  arrange: async (world, t) => {
    await killAt(t, world, { after: sent.touchFence })
    await leaseIsOver(world.database)
  },
}))

describe('a transaction', { concurrency: 5 }, () => {
  for (const point of points) test(`killed ${point.name}: transaction`, (t) => crash(t, point))
  for (const point of clearingPoints) test(`killed ${point.name}: clearing`, (t) => crash(t, point))
})
