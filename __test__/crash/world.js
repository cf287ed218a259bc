/**
 * An app whose processes can be killed with -9 at a named point: at a command (before the server gets
 * it, or when the reply is on its way), or in a line of a body or a hook.
 */
import assert from 'node:assert/strict'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'
import { startWireProxy } from '../helpers/wire-proxy.js'

/** @import { Database } from '../helpers/database.js' */
/** @import { Project } from '../helpers/project.js' */
/** @import { Matcher } from '../helpers/wire-proxy.js' */

/**
 * @typedef {{ before: Matcher } | { after: Matcher } | { inside: string } | { saying: string }} Place
 *   a command, its reply, a line in a body or a hook, or what the process has printed
 *
 * @typedef {Project & { database: Database, ok: (...args: string[]) => Promise<Ended> }} World
 * @typedef {import('../helpers/child.js').Ended} Ended
 */

export const files = /** @type {const} */ (['1.js', '2.js', '3.js'])

/** Long enough that a machine which stalls does not lose the lock before its kill. */
const ttlMs = 2000

/** Exports `arrived`, where a process ends that was told to end there. */
const arrivals = `
import { writeSync } from 'node:fs'
export function arrived(point) {
  if (process.env.KILL_AT !== point) return
  writeSync(2, 'arrived at ' + point)
  process.kill(process.pid, 'SIGKILL')
}`

const config = `
import { arrived } from './arrived.js'
const hooks = ['beforeAll', 'beforeEach', 'afterEach', 'afterAll', 'onError']
export default {
  hooks: Object.fromEntries(hooks.map((hook) => [hook, (name) => {
    arrived(typeof name === 'string' ? hook + ' of ' + name : hook)
  }])),
}`

/**
 * @param {string} name
 * @param {string} [more] statements at the end of `up`
 */
export const plain = (name, more = '') => source(name, more, false)

/** @param {string} name */
export const transactional = (name) => source(name, '', true)

/**
 * @param {string} name
 * @param {string} more
 * @param {boolean} useTransaction
 */
const source = (name, more, useTransaction) => `
import { arrived } from '../arrived.js'
export const useTransaction = ${useTransaction}
const write = async (counter, { db, session }) => {
  arrived('${name}: before its write of ' + counter)
  const options = { upsert: true, ...(session ? { session } : {}) }
  await db.collection('runs').updateOne({ _id: '${name}' }, { $inc: { [counter]: 1 } }, options)
  arrived('${name}: after its write of ' + counter)
}
export async function up(context) {
  await write('ups', context)
  ${more}
}
export const down = (context) => write('downs', context)
`

const plainFiles = Object.fromEntries(files.map((file) => [file, plain(file)]))

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} [own]
 * @param {string} [uri] of the server
 * @returns {Promise<World>}
 */
export async function createWorld(t, own = {}, uri) {
  const database = await freshDatabase(t, uri)
  const app = await project(t, { ...plainFiles, ...own }, database)
  await app.write('arrived.js', arrivals)
  await app.write('mmk.config.js', config)
  return {
    ...app,
    database,
    ok: async (...args) => {
      const end = await app.mmk(args).ended
      assert.equal(end.code, 0, `${args.join(' ')}: ${end.stdout}${end.stderr}`)
      return end
    },
  }
}

/**
 * Starts a run and kills it there.
 *
 * @param {import('node:test').TestContext} t
 * @param {World} world
 * @param {Place} place
 * @param {readonly string[]} [args]
 */
export async function killAt(t, world, place, args = ['up']) {
  const run = [...args, '--lock-ttl', `${ttlMs / 1000}`]
  if ('inside' in place) {
    const end = await world.mmk(run, { env: { KILL_AT: place.inside } }).ended
    assert.ok(end.stderr.includes(`arrived at ${place.inside}`), end.stdout + end.stderr)
    return void assert.equal(end.signal, 'SIGKILL')
  }
  if ('saying' in place) {
    const child = world.mmk(run)
    const said = () => child.stderr().includes(place.saying)
    return await killOnce(child, poll(said, { what: place.saying, deadlineMs: 30_000 }))
  }
  const proxy = await startWireProxy(t, world.database.uri)
  const there =
    'before' in place ? proxy.hold('before', place.before) : proxy.hold('after', place.after)
  await killOnce(world.mmk(run, { env: { MMK_URI: proxy.uri } }), there)
}

/**
 * @param {import('../helpers/child.js').Child} child
 * @param {Promise<unknown>} there resolves when it has come to where it shall be killed
 */
async function killOnce(child, there) {
  const early = child.ended.then((end) => {
    throw new Error(`it ended before it came there: ${end.code} ${end.stdout}${end.stderr}`)
  })
  await Promise.race([there, early])
  early.catch(() => {})
  child.kill('SIGKILL')
  assert.equal((await child.ended).signal, 'SIGKILL')
}

/** @param {Database} database */
export async function leaseIsOver(database) {
  await poll(
    async () => {
      const [lock, now] = [await database.lock(), await database.now()]
      return lock === null || lock.expiresAt < now
    },
    { what: 'the lease is over', deadlineMs: 30_000, everyMs: 50 },
  )
}

/**
 * @param {Database} database
 * @param {'ups' | 'downs'} counter
 */
export async function written({ db }, counter) {
  const runs = await db.collection('runs').find().toArray()
  return files.map((file) => runs.find(({ _id }) => String(_id) === file)?.[counter] ?? 0)
}
