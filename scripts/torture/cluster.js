/**
 * The replica set of a torture: three members of our own on loopback, which can be stopped, killed,
 * started again and cut off one by one. Everybody reaches them through their doors (`network.js`);
 * only we talk to them directly, for an honest answer while the set is torn.
 */
import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { freePort } from '../free-port.js'
import { ensureMongod } from '../mongod-binary.js'
import { ScriptError } from '../process.js'
import { closeDoor, openDoor } from './network.js'

/**
 * @typedef {object} Member
 * @property {number} port its own, behind the door
 * @property {import('./network.js').Door} door
 * @property {import('node:child_process').ChildProcess} child
 * @property {() => import('node:child_process').ChildProcess} launch
 *
 * @typedef {object} Cluster
 * @property {string} uri through the doors
 * @property {string} version
 * @property {Member[]} members
 * @property {() => Promise<Member | null>} primary the newest of those that believe it, if any does
 * @property {(member: Member) => MongoClient} direct a new client of one member, to be closed
 * @property {() => Promise<void>} stop
 */

const size = 3
const replicaSet = 'torture'
const readyWithinMs = 60_000
/** Elections in a quarter of the usual time, as leases are a tenth of theirs. */
const settings = { electionTimeoutMillis: 2500 }

/**
 * @param {string} folder for the members' data
 * @param {object} [options]
 * @param {string | undefined} [options.release] such as `5.0`
 * @param {import('./network.js').OnRefused} [options.onRefused] the members refuse update pipelines
 * @returns {Promise<Cluster>}
 */
export async function startCluster(folder, { release, onRefused } = {}) {
  const binary = await ensureMongod(release)
  /** @type {Member[]} */
  const members = []
  const killAll = () => {
    for (const { child } of members) child.kill('SIGKILL')
  }
  process.on('exit', killAll)
  const stop = async () => {
    await Promise.all(members.map(({ child }) => end(child)))
    for (const { door } of members) closeDoor(door)
    process.off('exit', killAll)
  }
  try {
    for (let index = 0; index < size; index += 1) {
      members.push(await createMember(binary, join(folder, `member-${index}`), onRefused))
    }
    await initiate(members)
    const uri = `mongodb://${hosts(members).join(',')}/?replicaSet=${replicaSet}`
    return {
      uri,
      version: binary.version,
      members,
      primary: () => primaryOf(members),
      direct,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * @param {import('../mongod-binary.js').MongodBinary} binary
 * @param {string} folder
 * @param {import('./network.js').OnRefused} [onRefused]
 * @returns {Promise<Member>}
 */
async function createMember(binary, folder, onRefused) {
  await mkdir(folder)
  const port = await freePort()
  const options = {
    '--dbpath': folder,
    '--logpath': join(folder, 'mongod.log'),
    '--port': String(port),
    '--bind_ip': '127.0.0.1',
    '--wiredTigerCacheSizeGB': '0.25',
    '--replSet': replicaSet,
    // All of a torture must fit: the checks read the oplog from its beginning.
    '--oplogSize': '900',
  }
  const launch = () => {
    const args = [...Object.entries(options).flat(), '--logappend']
    args.push('--setParameter', 'diagnosticDataCollectionEnabled=false')
    const env = { ...process.env, ...binary.env }
    return spawn(binary.path, args, { env, stdio: 'ignore' }).once('error', () => {})
  }
  return { port, door: await openDoor(port, onRefused), child: launch(), launch }
}

/** @param {readonly Member[]} members */
const hosts = (members) => members.map(({ door }) => `127.0.0.1:${door.port}`)

/** @param {Member} member */
function direct({ port }) {
  return new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    serverSelectionTimeoutMS: 1000,
    socketTimeoutMS: 5000,
  })
}

/** @param {readonly Member[]} members */
async function initiate(members) {
  await Promise.all(members.map((member) => answer(member, { ping: 1 })))
  const list = hosts(members).map((host, _id) => ({ _id, host }))
  const config = { _id: replicaSet, members: list, settings }
  await answer(/** @type {Member} */ (members[0]), { replSetInitiate: config })
  await within(readyWithinMs, 'a primary was elected', () => primaryOf(members))
}

/** @param {readonly Member[]} members */
async function primaryOf(members) {
  const states = await Promise.all(
    members.map(async (member) => {
      const hello = await command(member, { hello: 1 }).catch(() => null)
      const election = hello?.isWritablePrimary ? String(hello.electionId) : ''
      return { member, election }
    }),
  )
  // Election ids rise with the term, and compare as text.
  const [newest] = states.sort((a, b) => b.election.localeCompare(a.election))
  return newest?.election ? newest.member : null
}

/**
 * @param {Member} member
 * @param {import('mongodb').Document} request
 */
export async function command(member, request) {
  const client = direct(member)
  try {
    return await client.db('admin').command(request)
  } finally {
    await client.close()
  }
}

/**
 * Asks a member that may only just have been started.
 * @param {Member} member
 * @param {import('mongodb').Document} request
 */
function answer(member, request) {
  return within(readyWithinMs, 'a member answered', () =>
    command(member, request).catch(() => null),
  )
}

/**
 * @template T
 * @param {number} ms
 * @param {string} what completes the sentence "It did not happen in time: …"
 * @param {() => T | Promise<T>} condition
 * @returns {Promise<NonNullable<T>>} its first truthy answer
 */
export async function within(ms, what, condition) {
  const deadline = performance.now() + ms
  for (;;) {
    const found = await condition()
    if (found) return found
    if (performance.now() > deadline) throw new ScriptError(`It did not happen in time: ${what}`)
    await delay(100)
  }
}

/** @param {import('node:child_process').ChildProcess} child */
export async function end(child) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const closed = new Promise((resolve) => child.once('close', resolve))
  // Its data goes away with it: there is nothing to shut down in good order.
  child.kill('SIGKILL')
  await closed
}
