/**
 * A MongoDB server of one's own, on loopback, with nothing kept: for the tests, the demo, and by hand.
 *
 *   node scripts/mongod.js [--standalone]             prints its URI and serves until Ctrl-C
 *   node scripts/mongod.js [--standalone] -- <command>   runs a command with MONGODB_URI set to it
 *
 * Promises that a started server accepts writes, and that `stop` ends exactly the processes that
 * `start` began and removes their folder. It does not survive us: it is ended when we exit.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from './free-port.js'
import { ensureMongod } from './mongod-binary.js'
import { endWithUs, isMain, main, run, ScriptError } from './process.js'

/**
 * @typedef {object} Server
 * @property {string} uri connects with a plain `new MongoClient(uri)`, without a database name
 * @property {string} version the server's version, such as `6.0.27`
 * @property {Member[]} members
 * @property {() => Promise<void>} stop safe to call twice
 *
 * @typedef {{ port: number, child: import('node:child_process').ChildProcess, log: string }} Member
 */

const startDeadlineMs = 60_000
const stopDeadlineMs = 10_000
/** A server that is just ending may still hold its files for a moment. */
const removal = { recursive: true, force: true, maxRetries: 5 }
const replicaSet = 'rs0'

/**
 * @param {object} [options]
 * @param {number} [options.members] size of the replica set; 0 is a standalone
 * @param {readonly string[]} [options.parameters] more of the server's, as `name=value`
 * @param {(index: number) => NodeJS.ProcessEnv} [options.env] added to a member's environment
 * @returns {Promise<Server>}
 */
export async function startMongod({ members: size = 1, parameters = [], env = () => ({}) } = {}) {
  const binary = await ensureMongod()
  const folder = await mkdtemp(join(tmpdir(), 'mmk-mongod-'))
  /** @type {Member[]} */
  const members = []
  const dismiss = endWithUs(() => {
    for (const { child } of members) child.kill('SIGKILL')
    rmSync(folder, removal)
  })
  const stop = async () => {
    await Promise.all(members.map((member) => end(member.child)))
    dismiss()
    await rm(folder, removal)
  }
  try {
    for (let index = 0; index < Math.max(size, 1); index += 1) {
      const own = { ...binary, env: { ...binary.env, ...env(index) } }
      members.push(await launch(own, join(folder, String(index)), size > 0, parameters))
    }
    return { uri: await ready(members, size > 0), version: binary.version, members, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * @param {import('./mongod-binary.js').MongodBinary} binary
 * @param {string} folder
 * @param {boolean} inReplicaSet
 * @param {readonly string[]} more
 * @returns {Promise<Member>}
 */
async function launch(binary, folder, inReplicaSet, more) {
  await mkdir(folder)
  const port = await freePort()
  const log = join(folder, 'mongod.log')
  const options = {
    '--dbpath': folder,
    '--logpath': log,
    '--port': String(port),
    '--bind_ip': '127.0.0.1',
    '--wiredTigerCacheSizeGB': '0.25',
    ...(inReplicaSet && { '--replSet': replicaSet, '--oplogSize': '64' }),
  }
  // enableTestCommands allows fail points; diagnostics would only write to a folder that goes away.
  const parameters = ['enableTestCommands=1', 'diagnosticDataCollectionEnabled=false', ...more]
  const flags = process.platform === 'win32' ? [] : ['--nounixsocket']
  const child = spawn(
    binary.path,
    [
      ...Object.entries(options).flat(),
      ...parameters.flatMap((each) => ['--setParameter', each]),
      ...flags,
    ],
    { env: { ...process.env, ...binary.env }, stdio: 'ignore' },
  )
  child.once('error', () => {})
  return { port, child, log }
}

/**
 * @param {readonly Member[]} members
 * @param {boolean} inReplicaSet
 * @returns {Promise<string>} the URI, once there is a primary that takes writes
 */
async function ready(members, inReplicaSet) {
  const hosts = members.map(({ port }) => `127.0.0.1:${port}`)
  const deadline = Date.now() + startDeadlineMs
  await Promise.all(hosts.map((_, index) => command(members, index, { ping: 1 }, deadline)))
  const uri = `mongodb://${hosts.join(',')}/`
  if (!inReplicaSet) return uri

  const config = { _id: replicaSet, members: hosts.map((host, _id) => ({ _id, host })) }
  await command(members, 0, { replSetInitiate: config }, deadline)
  let writable = false
  while (!writable && Date.now() < deadline) {
    const { primary, isWritablePrimary } = await command(members, 0, { hello: 1 }, deadline)
    writable = Boolean(primary) && (hosts.length > 1 || isWritablePrimary)
    if (!writable) await delay(50)
  }
  if (!writable) throw new ScriptError('The replica set elected no primary within a minute')
  return `${uri}?replicaSet=${replicaSet}`
}

/**
 * Ask one member, however young it is.
 *
 * @param {readonly Member[]} members
 * @param {number} index
 * @param {import('mongodb').Document} request
 * @param {number} deadline
 * @returns {Promise<import('mongodb').Document>}
 */
async function command(members, index, request, deadline) {
  // Imported late: the scripts that set everything up run before there is a driver.
  const { MongoClient, MongoServerError } = await import('mongodb')
  const member = /** @type {Member} */ (members[index])
  for (;;) {
    // A client that could not connect is closed for good, so each attempt has its own.
    const client = new MongoClient(`mongodb://127.0.0.1:${member.port}/?directConnection=true`, {
      serverSelectionTimeoutMS: 500,
    })
    try {
      return await client.db('admin').command(request)
    } catch (error) {
      const final = error instanceof MongoServerError || member.child.exitCode !== null
      if (final || Date.now() > deadline) throw await diagnose(member, error)
    } finally {
      await client.close()
    }
    await delay(50)
  }
}

/**
 * @param {Member} member
 * @param {unknown} error
 */
async function diagnose(member, error) {
  const log = await readFile(member.log, 'utf8').catch(() => '')
  const state = member.child.exitCode === null ? 'does not answer' : 'ended by itself'
  return new ScriptError(`mongod ${state}: ${error}\n${log.split('\n').slice(-6).join('\n')}`)
}

/** @param {import('node:child_process').ChildProcess} child */
async function end(child) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const closed = new Promise((resolve) => child.once('close', resolve))
  child.kill('SIGTERM')
  const impatience = setTimeout(() => child.kill('SIGKILL'), stopDeadlineMs)
  await closed
  clearTimeout(impatience)
}

async function cli() {
  const split = process.argv.indexOf('--')
  const [program, ...args] = split < 0 ? [] : process.argv.slice(split + 1)
  const own = process.argv.slice(2, split < 0 ? undefined : split)
  const server = await startMongod({ members: own.includes('--standalone') ? 0 : 1 })
  try {
    if (program)
      return await run(program, args, { env: { ...process.env, MONGODB_URI: server.uri } })
    console.log(server.uri)
    await Promise.race(server.members.map(({ child }) => once(child, 'close')))
  } finally {
    await server.stop()
  }
}

if (isMain(import.meta.url)) main(cli)
