/**
 * `mmk down` and `mmk redo`, killed before and after each write that is theirs.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import * as sent from '../helpers/sent.js'
import { crash } from './story.js'

/** @import { Point, State } from './story.js' */
/** @import { World } from './world.js' */

/** @param {State[]} states @returns {State[]} */
const shown = (...states) => states

/** @param {State} state of 3.js, while the others are applied */
const last = (state) => shown('applied', 'applied', state)

/** @param {World} world */
const applied = ({ database, migrationsDir }) =>
  runMigrations({ ...database.config, migrationsDir, logger: null })

/**
 * An `up` won't guess how far a `down` has come; the same `down` again, or a mark, settles it.
 * @param {(world: World) => Promise<unknown>} settle
 * @returns {(world: World) => Promise<void>}
 */
const settledBy = (settle) => async (world) => {
  const refused = await world.mmk(['up', '--wait']).ended
  assert.equal(refused.code, 4, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /3\.js/)
  assert.equal((await world.database.entry('3.js'))?.status, 'running')
  await settle(world)
  await world.ok('up')
}
const downAgain = settledBy(({ ok }) => ok('down', '3.js'))
const markPending = settledBy(({ ok }) =>
  ok('mark', '3.js', '--pending', '--reason', 'it was undone'),
)

/** @type {Point[]} */
const downPoints = [
  { name: 'before the claim', at: { before: sent.claim('3.js') }, states: last('applied') },
  {
    name: 'after the claim',
    at: { after: sent.claim('3.js') },
    states: last('interrupted'),
    heal: downAgain,
  },
  {
    name: 'in the body before its write',
    at: { inside: '3.js: before its write of downs' },
    states: last('interrupted'),
    heal: downAgain,
  },
  {
    name: 'in the body after its write',
    at: { inside: '3.js: after its write of downs' },
    states: last('interrupted'),
    downs: [0, 0, 1],
    heal: markPending,
  },
  {
    name: 'before the settle',
    at: { before: sent.settle('3.js') },
    states: last('interrupted'),
    downs: [0, 0, 1],
    heal: downAgain,
  },
  {
    name: 'after the settle',
    at: { after: sent.settle('3.js') },
    states: last('reverted'),
    downs: [0, 0, 1],
  },
].map((point) => ({ ups: [1, 1, 1], args: ['down', '3.js'], arrange: applied, ...point }))

/** @type {Point[]} */
const redoPoints = [
  {
    name: 'after its down is recorded',
    at: { after: sent.settle('3.js') },
    states: last('reverted'),
    ups: [1, 1, 1],
  },
  {
    name: 'in its up before the write',
    at: { inside: '3.js: before its write of ups' },
    states: last('interrupted'),
    ups: [1, 1, 1],
  },
  {
    name: 'in its up after the write',
    at: { inside: '3.js: after its write of ups' },
    states: last('interrupted'),
    ups: [1, 1, 2],
    stop: true,
  },
].map((point) => ({ downs: [0, 0, 1], args: ['redo', '3.js'], arrange: applied, ...point }))

describe('down and redo', { concurrency: 5 }, () => {
  for (const point of downPoints) test(`killed ${point.name}: down`, (t) => crash(t, point))
  for (const point of redoPoints) test(`killed ${point.name}: redo`, (t) => crash(t, point))
})
