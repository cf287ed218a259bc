/**
 * Is this machine quiet enough to be believed? Asked before every measurement with the same small
 * work, an empty Node process, and with the load that others had left when the run began.
 */
import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { measured } from './processes.js'
import { median, unrest } from './stats.js'

/** Above, the quartiles of an empty process differ by more than the differences we publish. */
export const UNREST_LIMIT = 0.15
/** Share of the cores that was busy before we began. */
export const LOAD_LIMIT = 0.5
/** How far the slowest pulse may be from the fastest. */
export const DRIFT_LIMIT = 1.25
const PULSE_ROUNDS = 11

/** @returns {Promise<number[]>} wall times of `node -e 0` in ms */
export async function pulse() {
  const samples = []
  for (let round = 0; round < PULSE_ROUNDS; round += 1) {
    samples.push((await measured(['-e', '0'])).wallMs)
  }
  return samples
}

/** @returns {number} the load of the last minute, as a share of the cores */
export const loadShare = () => Number(loadavg()[0]) / cpus().length

/**
 * @param {readonly (readonly number[])[]} pulses
 * @param {number} load as `loadShare` gave it before the run
 * @returns {string[]} what speaks against the figures; empty on a quiet machine
 */
export function noiseOf(pulses, load) {
  const found = []
  if (load > LOAD_LIMIT) {
    found.push(`${Math.round(load * 100)} % of the cores were busy before the run`)
  }
  if (pulses.length === 0) return found
  const worst = Math.max(...pulses.map(unrest))
  if (worst > UNREST_LIMIT) {
    const share = Math.round(worst * 100)
    found.push(`the quartiles of an empty process lay ${share} % of its median apart`)
  }
  const medians = pulses.map(median)
  const drift = Math.max(...medians) / Math.min(...medians)
  if (drift > DRIFT_LIMIT) {
    found.push(`an empty process took ${drift.toFixed(2)} times as long at one time as at another`)
  }
  return found
}

/** @returns {string} what was measured on, without a name of the machine */
export function machine() {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  const system = `${type()} ${release()}`
  return `${cpu?.model.trim() ?? process.arch}, ${cpus().length} cores, ${memory} GiB, ${system}`
}
