/**
 * Turns what happens in a run into log lines, in 1.x's wording, and into 1.x's progress callbacks.
 *
 * Promises: one line for each thing worth a line, names escaped, `onStop` before the line that ends
 * what `onStart` began. It remembers nothing between two events.
 */
import { LOST_LOCK_WARNING, NO_LOCK_WARNING, waitingText } from './messages.js'
import { escapeLines, escapeText } from './text.js'

/** @import { Event, RunRequest } from './contract.d.ts' */
/** @import { MmkLogger, ProgressReporter } from '../index.d.ts' */

/** @typedef {{ level: keyof MmkLogger, text: string }} Line */

/**
 * @template {Event['type']} T
 * @typedef {Extract<Event, { type: T }>} EventOf
 */

/**
 * @param {Line['level']} level
 * @param {string} text
 * @returns {Line}
 */
const line = (level, text) => ({ level, text })

/** @param {EventOf<'migrationStarted'>} event */
function startedLines({ name, direction, rerunOf, forced }) {
  const shown = escapeText(name)
  if (rerunOf === 'interrupted') {
    return [line('warn', `⚠ Running again  ${shown} — it was interrupted before it finished`)]
  }
  if (rerunOf === 'failed') {
    return [line('warn', `⚠ Running again  ${shown} — it failed the last time`)]
  }
  if (forced && direction === 'up') {
    return [line('warn', `⚠ Forcing   re-run of already-applied ${shown}`)]
  }
  return []
}

/** @param {EventOf<'migrationFinished'>} event */
function finishedLine({ name, status, durationMs, transaction, attempts }) {
  const label = status === 'applied' ? '✔ Applied ' : '↩ Reverted'
  const facts = [`${durationMs}ms`]
  if (transaction) facts.push('transaction')
  if (attempts > 1) facts.push(`attempt ${attempts}`)
  return line('success', `${label} ${escapeText(name)}   [${facts.join(', ')}]`)
}

/** @param {EventOf<'transactionRetried'>} event */
function retriedLine({ name, attempt, reason }) {
  return line(
    'warn',
    `⚠ Retrying  ${escapeText(name)} — its transaction was given up (${escapeText(reason)}); ` +
      `attempt ${attempt} begins`,
  )
}

/** @param {EventOf<'migrationSkipped'>} event */
function skippedLine({ name, reason }) {
  const why = reason === 'Already applied' ? '' : `   (${escapeText(reason)})`
  return line('dim', `⏭ Skipped  ${escapeText(name)}${why}`)
}

/** @param {EventOf<'migrationMarked'>} event */
function markedLine({ name, status, reason }) {
  const state = status === 'applied' ? 'applied' : 'pending'
  const why = reason === null ? '' : `   (${escapeText(reason)})`
  return line('success', `✔ Marked   ${escapeText(name)} as ${state}${why}`)
}

/** @param {EventOf<'claimConflict'>} event */
function conflictLine({ name, expected, found }) {
  return line(
    'warn',
    `⚠ Warning  ${escapeText(name)} was moved by another run meanwhile: ` +
      `expected "${escapeText(expected.status)}", found ${foundText(expected, found)}`,
  )
}

/**
 * @param {EventOf<'claimConflict'>['expected']} expected
 * @param {EventOf<'claimConflict'>['found']} found
 */
function foundText(expected, found) {
  if (!found) return 'gone'
  const status = `"${escapeText(found.status)}"`
  if (found.status !== expected.status) return status
  return found.runId === expected.runId
    ? `${status} in another version`
    : `${status} by another run`
}

/**
 * What is said of a run that found nothing to do: no event tells it.
 * @param {RunRequest['command']} command
 * @returns {string}
 */
export function nothingText(command) {
  if (command === 'redo') return 'Nothing to redo'
  return command === 'up' ? 'Nothing to migrate' : 'Nothing to rollback'
}

/**
 * @param {RunRequest['command']} command
 * @param {number} count
 * @returns {string}
 */
export function rehearsalText(command, count) {
  return `◎ Dry-run  Would ${command === 'up' ? 'apply' : 'revert'}: ${count}`
}

/** @param {EventOf<'orphansFound'>} event */
function orphansLine({ operations }) {
  const shown = operations.map(escapeText).join(', ')
  return line('warn', `⚠ Stopping what an earlier run left running on the server: ${shown}`)
}

/** Warnings with a line of their own: 1.x's words. */
const WARNINGS = new Map([
  ['NO_LOCK', NO_LOCK_WARNING],
  // Said again at every renewal that a run misses which goes on without its lease.
  ['LOCK_LOST', LOST_LOCK_WARNING],
])

/** @param {EventOf<'warning'>} event */
function warningLine({ code, message }) {
  return line('warn', WARNINGS.get(code) ?? `⚠ Warning  ${escapeLines(message)}`)
}

/**
 * The lines for one event, in order. Pure.
 * @param {Event} event
 * @returns {Line[]}
 */
export function eventLines(event) {
  switch (event.type) {
    case 'lockWaiting':
      // 1.x logged it as info; what a deploy is stuck behind belongs beside the warnings.
      return [line('warn', waitingText(event.holder))]
    case 'lockAcquired':
      return event.tookOverFrom === null
        ? []
        : [line('warn', '⚠ Took over the migration lock: its last holder stopped renewing it')]
    case 'renewalFailed':
      return [
        line('warn', `⚠ Could not renew the migration lock yet: ${escapeLines(event.message)}`),
      ]
    case 'leaseLost':
      return [line('warn', LOST_LOCK_WARNING)]
    case 'migrationStarted':
      return startedLines(event)
    case 'migrationFinished':
      return [finishedLine(event)]
    case 'transactionRetried':
      return [retriedLine(event)]
    case 'migrationMarked':
      return [markedLine(event)]
    case 'migrationSkipped':
      return [skippedLine(event)]
    case 'migrationFailed':
      return [line('error', `✖ Error    ${escapeText(event.name)}`)]
    case 'claimConflict':
      return [conflictLine(event)]
    case 'warning':
      return [warningLine(event)]
    case 'orphansFound':
      return [orphansLine(event)]
    case 'planned':
    case 'lockArmed':
    case 'leaseRenewed':
    case 'lockReleased':
      return []
  }
}

/**
 * @param {{ logger: MmkLogger | null, progress?: ProgressReporter | undefined }} options
 *   `logger: null` is silent
 * @returns {(event: Event) => void}
 */
export function createReporter({ logger, progress }) {
  return (event) => {
    if (event.type === 'migrationFinished' || event.type === 'migrationFailed') progress?.onStop()
    if (logger) {
      for (const { level, text } of eventLines(event)) logger[level](text)
    }
    if (event.type === 'migrationStarted') progress?.onStart(event.name, event.direction)
  }
}
