/**
 * `mmk mark` and `mmk import`, killed before and after each entry that they write.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as sent from '../helpers/sent.js'
import { crash } from './story.js'
import { killAt, leaseIsOver, written } from './world.js'

/** @import { Point, State } from './story.js' */
/** @import { World } from './world.js' */

/** @param {State[]} states @returns {State[]} */
const shown = (...states) => states

const markApplied = ['mark', '1.js', '--applied', '--reason', 'it was done by hand']

/** @type {Point[]} */
const markPoints = [
  {
    name: 'before it is written',
    at: { before: sent.mark('1.js') },
    states: shown('pending', 'pending', 'pending'),
    ups: [0, 0, 0],
  },
  {
    name: 'after it was written',
    at: { after: sent.mark('1.js') },
    states: shown('applied', 'pending', 'pending'),
    ups: [0, 0, 0],
  },
].map((point) => ({ args: markApplied, ...point }))

/** What a mark is for: a migration that `up` refuses to run again. @type {Point[]} */
const resolvingPoints = [
  {
    name: 'before it resolves an interruption',
    at: { before: sent.mark('1.js') },
    states: shown('interrupted', 'pending', 'pending'),
    heal: async (/** @type {World} */ world) => {
      await world.ok(...markApplied)
      await world.ok('up')
      assert.deepEqual(await written(world.database, 'ups'), [1, 1, 1])
    },
    stop: true,
  },
  {
    name: 'after it has resolved an interruption',
    at: { after: sent.mark('1.js') },
    states: shown('applied', 'pending', 'pending'),
  },
].map((point) => ({
  args: markApplied,
  ups: [1, 0, 0],
  arrange: async (world, t) => {
    await killAt(t, world, { inside: '1.js: after its write of ups' })
    await leaseIsOver(world.database)
  },
  ...point,
}))

/** What migrate-mongo has applied. */
const source = ['1.js', '2.js'].map((fileName, day) => ({
  fileName,
  appliedAt: new Date(Date.UTC(2024, 0, day + 1)),
}))

/** Until all of it is taken over, `up` runs nothing of it. @param {World} world */
async function importedAgain(world) {
  const whole = (await world.database.entries()).length === source.length
  const refused = await world.mmk(['up', '--wait']).ended
  assert.equal(refused.code, whole ? 0 : 4, refused.stdout + refused.stderr)
  if (!whole) {
    assert.match(refused.stderr, /FOREIGN_CHANGELOG/)
    await world.ok('import')
    await world.ok('up')
  }
  assert.deepEqual(await written(world.database, 'ups'), [0, 0, 1])
}

/** @type {Point[]} */
const importPoints = [
  {
    name: 'before the first entry',
    at: { before: sent.adopt('1.js') },
    states: shown('pending', 'pending', 'pending'),
  },
  {
    name: 'after the first entry',
    at: { after: sent.adopt('1.js') },
    states: shown('applied', 'pending', 'pending'),
  },
  {
    name: 'before the last entry',
    at: { before: sent.adopt('2.js') },
    states: shown('applied', 'pending', 'pending'),
  },
  {
    name: 'after the last entry',
    at: { after: sent.adopt('2.js') },
    states: shown('applied', 'applied', 'pending'),
  },
].map((point) => ({
  ups: [0, 0, 0],
  args: ['import'],
  arrange: ({ database }) =>
    database.db.collection('changelog').insertMany(source.map((d) => ({ ...d }))),
  heal: importedAgain,
  ...point,
}))

describe('mark and import', { concurrency: 5 }, () => {
  for (const point of [...markPoints, ...resolvingPoints]) {
    test(`killed ${point.name}: mark`, (t) => crash(t, point))
  }
  for (const point of importPoints) test(`killed ${point.name}: import`, (t) => crash(t, point))
})
