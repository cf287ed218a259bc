/**
 * What must be true after a kill: `mmk status` says what is so, and the next run heals it or refuses,
 * as configured. What is so is looked up in the raw entries and in what the bodies have written.
 */
import assert from 'node:assert/strict'
import { createWorld, files, killAt, leaseIsOver, plain, written } from './world.js'

/** @import { TestContext } from 'node:test' */
/** @import { Place, World } from './world.js' */

/**
 * @typedef {'pending' | 'interrupted' | 'failed' | 'applied' | 'reverted'} State
 *
 * @typedef {object} Point
 * @property {string} name completes "killed …"
 * @property {Place} at
 * @property {readonly State[]} states what `mmk status` shows of 1.js, 2.js and 3.js
 * @property {readonly number[]} ups how often each body's write has happened
 * @property {readonly number[]} [downs]
 * @property {readonly string[]} [args] of the run that is killed; `up`
 * @property {Record<string, string>} [files] that differ from `plainFiles`
 * @property {(world: World, t: TestContext) => Promise<unknown>} [arrange] what comes before that run
 * @property {(world: World) => Promise<unknown>} [meanwhile] what comes between the kill and the look
 * @property {boolean} [stop] is `up` asked to refuse first?
 * @property {(world: World) => Promise<unknown>} [heal] instead of one `up`; it leaves all applied
 */

/**
 * `mmk status`, the raw entries and the bodies' own traces agree with what the point says.
 * @param {World} world
 * @param {Point} point
 */
async function toldTruly({ database, ok }, { states, ups, downs = [0, 0, 0] }) {
  const rows = JSON.parse((await ok('status', '--json')).stdout)
  assert.deepEqual(
    rows.map((/** @type {any} */ { state }) => state),
    states,
  )
  const entries = await database.entries()
  const raw = files.map((file) => entries.find(({ name }) => name === file)?.status ?? 'pending')
  const stored = states.map((state) => (state === 'interrupted' ? 'running' : state))
  assert.deepEqual(raw, stored)
  assert.deepEqual(await written(database, 'ups'), ups)
  assert.deepEqual(await written(database, 'downs'), downs)
}

/**
 * With `onInterrupted: 'stop'` nothing is run and nothing is written.
 * @param {World} world
 */
export async function refusedUnderStop({ database, mmk }) {
  const [entries, ups] = [await database.entries(), await written(database, 'ups')]
  const refused = await mmk(['up', '--wait'], { env: { MMK_ON_INTERRUPTED: 'stop' } }).ended
  assert.equal(refused.code, 4, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /MIGRATION_INTERRUPTED/)
  assert.match(refused.stderr, /mmk mark/)
  assert.deepEqual(await database.entries(), entries)
  assert.deepEqual(await written(database, 'ups'), ups)
}

/**
 * The whole story of one point.
 * @param {import('node:test').TestContext} t
 * @param {Point} point
 * @param {string} [uri] of the server
 */
export async function crash(t, point, uri) {
  const world = await createWorld(t, point.files, uri)
  await point.arrange?.(world, t)
  await killAt(t, world, point.at, point.args)
  await point.meanwhile?.(world)
  await leaseIsOver(world.database)
  await toldTruly(world, point)

  if (point.stop) await refusedUnderStop(world)
  if (point.heal) await point.heal(world)
  else await healed(world, point)

  const entries = await world.database.entries()
  assert.deepEqual(new Set(entries.map(({ status }) => status)), new Set(['applied']))
  await nothingLeft(world)
}

/**
 * The lock is free, no run is unsettled, and no transaction is open.
 * @param {World} world
 */
async function nothingLeft({ database }) {
  assert.equal(await database.lock(), null)
  const locks = database.db.collection('_mmk_locks')
  const fence = await locks.findOne({ _id: /** @type {any} */ ('mmk_fence') })
  assert.deepEqual(fence?.unsettled ?? [], [], 'every run is off the register')
}

/**
 * One `up` runs exactly what does not count as applied, once, and one migration more, so that it has
 * something to do in any case.
 *
 * @param {World} world
 * @param {Pick<Point, 'states' | 'ups'>} point
 */
export async function healed(world, { states, ups }) {
  await world.write('migrations/4.js', plain('4.js'))
  const { stdout, stderr } = await world.ok('up', '--wait')
  for (const [index, state] of states.entries()) {
    const again = new RegExp(`again.*${files[index]}.*interrupted`, 'i')
    if (state === 'interrupted') assert.match(stdout + stderr, again)
  }
  const once = ups.map((count, index) => count + (states[index] === 'applied' ? 0 : 1))
  assert.deepEqual(await written(world.database, 'ups'), once)
}
