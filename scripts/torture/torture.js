/**
 * One torture, from the first server to the verdict: real processes of the product against a real
 * replica set of three, faults from a seed, and the checks over what everybody saw.
 *
 * Promises: everything that it started has ended when it settles; the histories stay where the report
 * says if a check found something. It needs Linux, because it cuts connections and finds stopped
 * processes through /proc, and no privileges.
 */
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { ScriptError } from '../process.js'
import { check } from './checks/index.js'
import { startCluster, within } from './cluster.js'
import { readFacts } from './facts.js'
import { figuresOf } from './figures.js'
import { startFleet } from './fleet.js'
import { now, openHistory, readHistory } from './history.js'
import { leftOut } from './left-out.js'
import { clearOldLock, torment } from './nemesis.js'
import { bulkSize, profileFor } from './profile.js'
import { createRandom } from './random.js'

/**
 * @typedef {object} Options
 * @property {string} product the folder in whose `node_modules` it is installed
 * @property {number} seconds of faults; what is before and after them comes on top
 * @property {string} seed
 * @property {string} [release] of MongoDB, such as `5.0`
 * @property {boolean} [refusePipelines] do the servers refuse update pipelines?
 * @property {number} [calmSeconds] afterwards, in which the lock must be taken again
 * @property {number} [workers]
 * @property {string} [mutant] named in the history and chosen in the core
 * @property {NodeJS.ProcessEnv} [env] for the processes under torture
 *
 * @typedef {object} Report
 * @property {string} version of the servers
 * @property {import('./checks/index.js').Finding[]} findings
 * @property {Record<string, Record<string, number>>} figures
 * @property {string[]} leftOut what no torture does, one line each
 * @property {string | null} folder with the histories, kept when there are violations
 */

const dbName = 'torture'

/** @param {Options} options @returns {Promise<Report>} */
export async function torture(options) {
  const { product, seconds, seed, release, refusePipelines = false, mutant } = options
  const { calmSeconds = 20, workers = 5, env = {} } = options
  if (process.platform !== 'linux') throw new ScriptError('The torture needs Linux (/proc)')
  const home = await mkdtemp(join(tmpdir(), 'mmk-torture-'))
  const history = join(home, 'history')
  await mkdir(history)
  const record = openHistory(history, 'nemesis')
  const random = createRandom(seed)
  const profile = profileFor(mutant)
  /** @param {string} command */
  const onRefused = (command) => record('pipelineRefused', { command })
  const cluster = await startCluster(home, { release, ...(refusePipelines && { onRefused }) })
  let kept = true
  try {
    await symlink(join(product, 'node_modules'), join(home, 'node_modules'), 'junction')
    const { uri, version } = cluster
    record('begun', { seed, seconds, mutant, version, refusePipelines })
    record('calibrated', { wall: Date.now() })
    await prepare(uri)
    const setting = { home, history, uri, dbName, workers, profile, random, record, env }
    await liveThrough(cluster, setting, { seconds, calmSeconds })
    const facts = await factsOf(cluster)
    const evidence = { history: await readHistory(history), facts, ttlMs: profile.ttlMs }
    const findings = check(evidence)
    kept = findings.some(({ violations }) => violations.length > 0)
    const folder = kept ? history : null
    return { version, findings, figures: figuresOf(evidence), leftOut: await leftOut(), folder }
  } finally {
    await cluster.stop()
    for (const name of await readdir(home)) {
      if (!kept || name !== 'history') await rm(join(home, name), { recursive: true, force: true })
    }
    if (!kept) await rm(home, { recursive: true })
  }
}

/**
 * Faults, then a calm in which the lock must be taken again, then the end of the fleet.
 * @param {import('./cluster.js').Cluster} cluster
 * @param {import('./fleet.js').Setting} setting
 * @param {{ seconds: number, calmSeconds: number }} lengths
 */
async function liveThrough(cluster, setting, { seconds, calmSeconds }) {
  const fleet = startFleet(setting)
  const victims = { cluster, fleet, setting }
  try {
    await torment(victims, now() + seconds * 1000)
    for (const { child } of fleet.slots) child.kill('SIGCONT')
    await within(60_000, 'there was a primary again', () => cluster.primary())
    // What 1.3.0 leaves behind lasts a minute, which is no matter of ours.
    await fleet.dismiss(({ old }) => old)
    await clearOldLock(victims, 0)
    setting.record('calmed')
    await delay(calmSeconds * 1000)
    setting.record('dismissed')
    await fleet.dismiss(() => true)
  } finally {
    await fleet.stop()
  }
}

/** What the effects need to be there. @param {string} uri */
async function prepare(uri) {
  const client = await new MongoClient(uri, { writeConcern: { w: 'majority' } }).connect()
  try {
    const db = client.db(dbName)
    await Promise.all(['fenced', 'plain'].map((name) => db.createCollection(name)))
    const documents = Array.from({ length: bulkSize }, (_, index) => ({ index }))
    await db.collection('bulk').insertMany(documents)
  } finally {
    await client.close()
  }
}

/** @param {import('./cluster.js').Cluster} cluster */
async function factsOf(cluster) {
  const primary = await within(60_000, 'there was a primary', () => cluster.primary())
  const client = cluster.direct(primary)
  try {
    return await readFacts(client, dbName)
  } finally {
    await client.close()
  }
}
