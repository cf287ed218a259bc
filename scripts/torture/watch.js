/**
 * The history of one process that runs migrations: opened once, fed by `onEvent` and by the bodies.
 *
 * One run at a time: what a body records carries the run that it began in.
 */
import { openHistory } from './history.js'

/** @typedef {import('../../index.d.ts').MmkEvent} MmkEvent */

/** What a process of the fleet finds in its environment. */
const { TORTURE_HISTORY = '', TORTURE_WHO = '', TORTURE_PROFILE = '{}' } = process.env

/** @type {import('./profile.js').Profile} */
export const profile = JSON.parse(TORTURE_PROFILE)
export const record = openHistory(TORTURE_HISTORY, TORTURE_WHO)

/** @typedef {{ run: string | null, owner: string | null, token: number | null }} Current */

/** @type {Current} */
const none = { run: null, owner: null, token: null }
let current = none
/** Does the round run on a client of its own? */
let ownClient = false

/** The run that this process is in. */
export const currentRun = () => current

export const hasOwnClient = () => ownClient

/** @param {MmkEvent} event */
export function onEvent(event) {
  if (event.type === 'lockAcquired') {
    current = { run: event.runId, owner: event.owner, token: null }
  }
  if (event.type === 'lockArmed') current = { ...current, token: event.fencingToken }
  const { type, ...fields } = event
  record(type, { ...slim(fields), ...current })
}

/**
 * A run is about to be asked for. Without a lock it has no name that a watcher learns.
 * @param {{ noLock: boolean, repo: string, ownClient: boolean }} round
 */
export function beginRound(round) {
  current = none
  ownClient = round.ownClient
  record('roundBegun', round)
}

/** Holders and contexts are long, and no check reads them. @param {Record<string, unknown>} fields */
function slim({ holder, context, ...fields }) {
  return fields
}

/**
 * Around a time in which this process does nothing, so that the checks know of it.
 * @param {string} why
 * @param {() => void} doze
 */
export function pausing(why, doze) {
  record('pauseBegun', { why })
  doze()
  record('pauseEnded', { why })
}
