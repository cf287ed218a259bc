/**
 * How the host answers: failures as data, and events, without secrets, to whoever listens.
 *
 * Promises: nothing here throws or rejects.
 */
import { isMmkError } from './errors.js'
import { redactData } from './redact.js'
import { describeOurs, describeThrown } from './thrown.js'
import { unheard } from './unheard.js'

/** @import { Event, HostReply } from './contract.d.ts' */
/** @import { Setting } from './host.js' */
/** @import { Causes } from './thrown.js' */

/**
 * @param {Causes} causes
 * @param {() => Promise<unknown>} work
 * @returns {Promise<HostReply>}
 */
export async function reported(causes, work) {
  try {
    await work()
    return { ok: true }
  } catch (error) {
    return { ok: false, error: hostError(error, causes) }
  }
}

/**
 * @param {unknown} error
 * @param {Causes} causes
 */
export function hostError(error, causes) {
  return isMmkError(error) ? describeOurs(error, causes) : describeThrown(error, causes)
}

/**
 * Watchers can't stop a run: what they throw has nowhere to go.
 * @param {Event} event
 * @param {Pick<Setting, 'emit' | 'config'>} setting
 */
export function emitSafely(event, { emit, config }) {
  const shown = redactData(event)
  for (const watcher of [emit, config.onEvent]) {
    // Promised in the types of `onEvent`.
    if (watcher) unheard(watcher)(shown)
  }
}
