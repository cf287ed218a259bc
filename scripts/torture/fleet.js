/**
 * The processes under torture. Each slot of the fleet always has one: when it ends, whatever the
 * reason, the next one starts. Some use the API, some are the command line, a few are of 1.3.0.
 *
 * A process that has stopped itself is woken up again after a while. Whoever leaves is told to
 * finish what it does, and is killed if it takes too long.
 */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { neutralEnv } from '../process.js'
import { prepareRepo } from './repos.js'

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/**
 * @typedef {object} Setting
 * @property {string} home
 * @property {string} history folder
 * @property {string} uri
 * @property {string} dbName
 * @property {number} workers
 * @property {import('./profile.js').Profile} profile
 * @property {import('./random.js').Random} random
 * @property {import('./history.js').Recorder} record
 * @property {NodeJS.ProcessEnv} env for the processes
 *
 * @typedef {object} Slot
 * @property {string} who
 * @property {boolean} old of 1.3.0
 * @property {ChildProcess} child the process that it has now
 * @property {boolean} leaving it gets no other
 * @property {boolean} waking its process is stopped, and somebody sees to it
 *
 * @typedef {object} Fleet
 * @property {Slot[]} slots
 * @property {(slot: Slot, afterMs: number) => void} wakeLater sends SIGCONT
 * @property {(which: (slot: Slot) => boolean) => Promise<void>} dismiss
 * @property {() => Promise<void>} stop at once
 */

const watchEveryMs = 100
const finishWithinMs = 30_000

/** @param {Setting} setting @returns {Fleet} */
export function startFleet(setting) {
  const { profile, random, workers } = setting
  const slots = [
    ...Array.from({ length: workers }, (_, index) => newSlot(`worker${index}`, false)),
    ...Array.from({ length: profile.oldRunners }, (_, index) => newSlot(`old${index}`, true)),
  ]
  for (const slot of slots) occupy(setting, slot)
  const killAll = () => {
    for (const { child } of slots) child.kill('SIGKILL')
  }
  process.on('exit', killAll)

  /** @type {Fleet['wakeLater']} */
  const wakeLater = (slot, afterMs) => {
    const { child } = slot
    slot.waking = true
    setTimeout(() => {
      setting.record('woken', { worker: child.pid })
      child.kill('SIGCONT')
      slot.waking = false
    }, afterMs)
  }
  const watcher = setInterval(() => {
    for (const slot of slots) {
      wakeIfStopped(slot, () => wakeLater(slot, random.between(0.3, 2.2) * profile.ttlMs))
    }
  }, watchEveryMs)

  return {
    slots,
    wakeLater,
    dismiss: async (which) => {
      await Promise.all(slots.filter(which).map(dismiss))
    },
    stop: async () => {
      clearInterval(watcher)
      for (const slot of slots) slot.leaving = true
      await Promise.all(slots.map(({ child }) => gone(child, () => child.kill('SIGKILL'))))
      process.off('exit', killAll)
    },
  }
}

/** @param {string} who @param {boolean} old */
function newSlot(who, old) {
  return /** @type {Slot} */ ({ who, old, leaving: false, waking: false })
}

/**
 * Starts the slot's next process, and another after it.
 * @param {Setting} setting
 * @param {Slot} slot
 */
function occupy(setting, slot) {
  const cli = !slot.old && setting.random.chance(setting.profile.cliShare)
  const child = cli ? launchCli(setting, slot) : launchScript(setting, slot)
  const kind = cli ? 'cli' : slot.old ? 'old' : 'api'
  slot.child = child
  slot.waking = false
  setting.record('started', { worker: child.pid, kind })
  child.once('close', (code, signal) => {
    setting.record('ended', { worker: child.pid, kind, code, signal })
    if (!slot.leaving) occupy(setting, slot)
  })
}

/** @param {Setting} setting @param {Slot} slot */
function launchScript(setting, slot) {
  const script = fileURLToPath(new URL(slot.old ? 'old-runner.js' : 'worker.js', import.meta.url))
  return spawn(process.execPath, [script], {
    env: environment(setting, slot),
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  }).once('error', () => {})
}

/** @param {Setting} setting @param {Slot} slot */
function launchCli(setting, slot) {
  const { home, profile, random } = setting
  const repo = prepareRepo(home, random, profile, 'locked')
  const args = [
    join(home, 'node_modules', '.bin', 'mmk'),
    'up',
    ...(random.chance(profile.patient) ? ['--wait'] : []),
  ]
  return spawn(process.execPath, args, {
    cwd: repo.folder,
    env: environment(setting, slot),
    stdio: 'ignore',
  }).once('error', () => {})
}

/** @param {Setting} setting @param {Slot} slot @returns {NodeJS.ProcessEnv} */
function environment({ env, home, history, uri, dbName, profile, random }, { who }) {
  return {
    ...neutralEnv(),
    ...env,
    NO_COLOR: '1',
    MMK_URI: uri,
    MMK_DB: dbName,
    MMK_LOCK_TTL: String(profile.ttlMs / 1000),
    TORTURE_HOME: home,
    TORTURE_HISTORY: history,
    TORTURE_PROFILE: JSON.stringify(profile),
    TORTURE_SEED: String(random.next()),
    TORTURE_WHO: who,
  }
}

/**
 * @param {Slot} slot
 * @param {() => void} wake
 */
async function wakeIfStopped(slot, wake) {
  const { child } = slot
  const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8').catch(() => '')
  const state = stat.slice(stat.lastIndexOf(')') + 2)[0]
  if (state === 'T' && slot.child === child && !slot.waking) wake()
}

/** @param {Slot} slot */
async function dismiss(slot) {
  const { child } = slot
  slot.leaving = true
  const impatience = setTimeout(() => child.kill('SIGKILL'), finishWithinMs)
  await gone(child, () => {
    if (child.connected) child.send('finish', () => {})
  })
  clearTimeout(impatience)
}

/**
 * @param {ChildProcess} child
 * @param {() => void} ask
 */
async function gone(child, ask) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const closed = new Promise((resolve) => child.once('close', resolve))
  ask()
  await closed
}
