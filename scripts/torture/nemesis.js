/**
 * What befalls the fleet and its servers: one fault at a time, then a rest, for as long as the
 * torture lasts. Every fault has a begin and an end in the history, and all of them are healed when
 * `torment` returns.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { neutralEnv, root } from '../process.js'
import { command, end } from './cluster.js'
import { now } from './history.js'
import { cut } from './network.js'

/** @typedef {import('./profile.js').FaultKind} FaultKind */
/** @typedef {import('./cluster.js').Member} Member */
/** @typedef {import('./fleet.js').Slot} Slot */

/**
 * @typedef {object} Victims
 * @property {import('./cluster.js').Cluster} cluster
 * @property {import('./fleet.js').Fleet} fleet
 * @property {import('./fleet.js').Setting} setting
 */

/** @type {Record<FaultKind, (victims: Victims, primary: Member) => Promise<unknown>>} */
const faults = {
  killWorker: killOne,
  stopWorker: async (victims) => {
    const { fleet, setting } = victims
    const slot = await chosen(victims)
    const ms = setting.random.between(0.5, 2.5) * setting.profile.ttlMs
    setting.record('stopped', { worker: slot.child.pid, ms })
    slot.child.kill('SIGSTOP')
    fleet.wakeLater(slot, ms)
  },
  killAndUnlock: async (victims) => {
    await killOne(victims)
    await delay(victims.setting.random.between(0, 1000))
    await unlock(victims)
  },
  unlock,
  stopPrimary: async ({ setting }, { child }) => {
    child.kill('SIGSTOP')
    await delay(setting.random.between(2000, 9000))
    child.kill('SIGCONT')
  },
  killPrimary: async ({ setting }, member) => {
    await end(member.child)
    await delay(setting.random.between(1000, 4000))
    member.child = member.launch()
  },
  cutPrimary: async (victims, primary) => {
    const { cluster, setting } = victims
    const { random, profile } = setting
    const others = cluster.members.filter((member) => member !== primary)
    const away = others.map(({ child }) => pidOf(child))
    // Now and then somebody is on the wrong side with it.
    const with_ = random.chance(profile.stranded) ? [pidOf((await chosen(victims)).child)] : []
    const heal = [
      await cut([primary.door], away),
      await cut(doors(others), [pidOf(primary.child), ...with_]),
    ]
    await delay(random.between(...profile.cutMs))
    const late = random.chance(0.5)
    for (const each of heal) each(late)
  },
  cutWorker: async (victims) => {
    const { cluster, setting } = victims
    const { random, profile } = setting
    const slot = await chosen(victims)
    const heal = await cut(doors(cluster.members), [pidOf(slot.child)])
    await delay(random.between(0.3, 2) * profile.ttlMs)
    heal(random.chance(0.5))
  },
  stepDown: async (_, primary) => {
    const request = { replSetStepDown: 3, secondaryCatchUpPeriodSecs: 1, force: true }
    // It closes our connection, or has stepped down already.
    await command(primary, request).catch(() => {})
  },
}

/** @param {import('node:child_process').ChildProcess} child */
const pidOf = ({ pid = 0 }) => pid
/** @param {readonly Member[]} members */
const doors = (members) => members.map(({ door }) => door)

/**
 * @param {Victims} victims
 * @param {number} until on the clock of the histories
 */
export async function torment(victims, until) {
  const { random, profile, record } = victims.setting
  for (;;) {
    await delay(random.between(...profile.restMs))
    if (now() >= until) return
    await clearOldLock(victims, 1.5 * profile.ttlMs)
    const kind = random.weighted(profile.faults)
    const primary = await victims.cluster.primary()
    if (!primary) continue
    record('faultBegun', { kind })
    await faults[kind](victims, primary)
    record('faultEnded', { kind })
  }
}

/** @param {Victims} victims */
async function killOne(victims) {
  const { setting } = victims
  const slot = await chosen(victims)
  setting.record('killed', { worker: slot.child.pid })
  slot.child.kill('SIGKILL')
}

/** An operator, with the command line. @param {Victims} victims */
async function unlock({ setting }) {
  setting.record('unlockBegun')
  const child = spawn(process.execPath, [join(root, 'bin', 'mmk.js'), 'unlock', '--yes'], {
    cwd: setting.home,
    env: { ...neutralEnv(), ...setting.env, MMK_URI: setting.uri, MMK_DB: setting.dbName },
    stdio: 'ignore',
    timeout: 15_000,
    killSignal: 'SIGKILL',
  })
  const code = await new Promise((resolve) => child.once('error', resolve).once('close', resolve))
  setting.record('unlocked', { code })
}

/**
 * Whose turn it is: often whoever holds the lock now, as nobody else has as much to lose.
 * @param {Victims} victims
 * @returns {Promise<Slot>}
 */
async function chosen(victims) {
  const { fleet, setting } = victims
  const { profile, random } = setting
  const slots = fleet.slots.filter(({ old }) => !(old && profile.sparesOld))
  const any = random.pick(slots)
  if (!random.chance(profile.aimed)) return any
  const found = await readLock(victims)
  return slots.find(({ child }) => child.pid === found?.lock?.pid) ?? any
}

/**
 * A lock that a dead 1.3.0 left behind bars everybody for a minute: the operator has seen it before.
 * @param {Victims} victims
 * @param {number} silentMs without a renewal
 */
export async function clearOldLock(victims, silentMs) {
  const { lock = null, now: clock = 0 } = (await readLock(victims)) ?? {}
  const old = lock !== null && lock.leaseOwner !== lock.owner
  if (old && clock - lock.lockedAt >= silentMs) await unlock(victims)
}

/**
 * @param {Victims} victims
 * @returns {Promise<{ lock: import('mongodb').Document | null, now: number } | null>} null when there
 *   is no primary that answers
 */
async function readLock({ cluster, setting }) {
  const primary = await cluster.primary()
  if (!primary) return null
  const client = cluster.direct(primary)
  try {
    const locks = client.db(setting.dbName).collection('_mmk_locks')
    const lock = await locks.findOne({ _id: /** @type {any} */ ('mmk_lock') })
    const { localTime } = await client.db('admin').command({ hello: 1 })
    return { lock, now: Number(localTime) }
  } catch {
    return null
  } finally {
    await client.close()
  }
}
