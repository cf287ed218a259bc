/**
 * The texts that take more than one line, as pure functions from facts to strings.
 *
 * A text is `{ message, details }`: one sentence, and the facts below it, which the reader sees
 * indented. Everything that comes out of the database or from a file name is escaped here; secrets
 * are taken out by whoever prints (`redact.js`).
 */
import { escapeText, formatAge, formatTime, toDate } from './text.js'

/**
 * A lock document in either shape: the core's (milliseconds, `user`) or the public one (`Date`s,
 * `executedBy`).
 * @typedef {{
 *   namespace?: string | null
 *   host?: string | null
 *   pid?: number | null
 *   user?: string | null
 *   executedBy?: string | null
 *   running?: string | null
 *   ttlMs?: number | null
 *   beats?: number | null
 *   runId?: string | null
 *   expired?: boolean
 * } & { [at in 'acquiredAt' | 'lockedAt' | 'expiresAt' | 'now']?: number | Date | null }} LockFacts
 */

/** @typedef {{ message: string, details: string[] }} Text */

export const NO_LOCK_WARNING = '⚠ Running without a lock (--no-lock) — concurrent runs are unsafe'

export const LOST_LOCK_WARNING =
  '⚠ Lost the migration lock mid-run (renewal failed) — another run may have started'

/** 1.x's default: a 1.x holder doesn't write its TTL into the lock. */
const DEFAULT_TTL_MS = 60_000

/**
 * One text as the block that users log: the sentence, then its facts indented.
 * @param {Text} text
 * @returns {string}
 */
export function joinText({ message, details }) {
  return [message, ...details.map((line) => `  ${line}`)].join('\n')
}

/** @param {string | null | undefined} namespace */
function holderName(namespace) {
  return namespace ? `namespace "${escapeText(namespace)}"` : 'the default namespace'
}

/** @param {LockFacts} lock */
function holderUser(lock) {
  return lock.executedBy ?? lock.user ?? null
}

/**
 * Milliseconds between an instant and the server's clock when the lock was read.
 * @param {unknown} instant
 * @param {LockFacts} lock
 */
function ageOf(instant, lock) {
  const then = toDate(instant)
  const now = toDate(lock.now)
  return then && now ? now.getTime() - then.getTime() : null
}

/**
 * @param {LockFacts} lock
 * @param {{ utc?: boolean }} options
 */
function holderLine(lock, options) {
  const user = holderUser(lock)
  const since = toDate(lock.acquiredAt) ?? toDate(lock.lockedAt)
  const age = ageOf(since, lock)
  const ago = age === null ? '' : ` (${formatAge(age)} ago)`
  const facts = [
    lock.host == null ? null : `host ${escapeText(lock.host)}`,
    lock.pid == null ? null : `pid ${escapeText(lock.pid)}`,
    user === null ? null : `user ${escapeText(user)}`,
    since === null ? null : `since ${formatTime(since, options)}${ago}`,
  ].filter((fact) => fact !== null)
  return `Holder: ${facts.length > 0 ? facts.join(', ') : 'unknown (the lock names nobody)'}`
}

/**
 * What a run says that found the lock taken, or waited for it in vain.
 * @param {LockFacts | null} lock `null` when the lock was gone again before it could be read
 * @param {{ utc?: boolean | undefined, waitedMs?: number | undefined }} [options]
 * @returns {Text}
 */
export function busyLockText(lock, { waitedMs = 0, ...options } = {}) {
  const tryAgain =
    waitedMs > 0
      ? [
          `Waited ${formatAge(waitedMs)} for it: lockWaitTimeoutMs, or \`mmk up --wait=<ms>\`, says how long`,
          'Try: run again when it finishes',
        ]
      : ['Try: run again when it finishes (app start: runMigrations({ onLockHeld: "wait" }))']
  if (lock === null) {
    return { message: 'The migration lock was held by another run', details: tryAgain }
  }
  const frees =
    toDate(lock.expiresAt) === null
      ? "the lock doesn't say when it frees itself"
      : `the lock frees itself at ${formatTime(lock.expiresAt, options)}`
  return {
    message: `The migration lock is held by ${holderName(lock.namespace)}`,
    details: [
      holderLine(lock, options),
      'Why: all repos on this database take turns — one migration run at a time',
      `If the holder crashed, ${frees}; \`mmk unlock\` releases it now (check the holder first)`,
      ...tryAgain,
    ],
  }
}

/**
 * One line for those who watch a waiting run: who holds the lock, what it runs, how long it may last.
 * @param {LockFacts} lock
 * @param {{ utc?: boolean }} [options]
 * @returns {string}
 */
export function waitingText(lock, options = {}) {
  const at =
    lock.host == null ? '' : ` (host ${escapeText(lock.host)}, pid ${escapeText(lock.pid)})`
  const running = lock.running ? `, which is running ${escapeText(lock.running)}` : ''
  const ends = toDate(lock.expiresAt)
    ? `; its lease lasts until ${formatTime(lock.expiresAt, options)} unless renewed`
    : ''
  return `Waiting for the migration lock of ${holderName(lock.namespace)}${at}${running}${ends}`
}

/**
 * A lease of ours that was written under another primary is taken once it was seen to stand still for
 * about its TTL, which takes both numbers. Version 1 counts no beats, knows no `runId`, and goes by the
 * clock alone.
 * @param {LockFacts} lock
 */
function mayBeStuck({ beats, ttlMs, runId }) {
  return beats == null ? runId != null : ttlMs == null || ttlMs < 1000
}

/**
 * How alive the holder looks, judged by its own TTL on the server's clock.
 * @param {LockFacts} lock
 */
function renewalLine(lock) {
  const age = ageOf(lock.lockedAt, lock)
  if (lock.expired) {
    const end = ageOf(lock.expiresAt, lock)
    const ago = end === null ? '' : ` ${formatAge(end)} ago`
    const taken = `Its lease ended${ago}: the next run takes it over by itself`
    if (!mayBeStuck(lock)) return taken
    return `${taken}, unless the primary has changed since: then only releasing it frees it`
  }
  if (age === null) return '⚠ The lock does not say when it was last renewed'
  const ttl = lock.ttlMs ?? DEFAULT_TTL_MS
  if (age >= ttl)
    return `Last renewed ${formatAge(age)} ago, longer than its TTL (${formatAge(ttl)})`
  return (
    `⚠ Last renewed ${formatAge(age)} ago, within its TTL (${formatAge(ttl)})` +
    ' — the holder is almost certainly still running'
  )
}

/**
 * What an operator reads before being asked whether to force-release the lock.
 * @param {LockFacts} lock
 * @param {{ ourNamespace: string | null }} options
 * @returns {string[]}
 */
export function unlockLines(lock, { ourNamespace }) {
  const since = toDate(lock.acquiredAt) ?? toDate(lock.lockedAt)
  const who = `pid ${escapeText(lock.pid ?? '?')} on ${escapeText(lock.host ?? '?')}`
  const user = escapeText(holderUser(lock) ?? '?')
  const lines = [
    `⚠ Lock held by ${holderName(lock.namespace)}: ${who} (${user}) since ` +
      (since?.toISOString() ?? 'an unknown time'),
  ]
  if (lock.namespace && lock.namespace !== ourNamespace) {
    const ours = ourNamespace ? `"${escapeText(ourNamespace)}"` : 'the default namespace'
    lines.push(
      `⚠ This lock belongs to "${escapeText(lock.namespace)}", not this repo (${ours})` +
        ' — releasing it may let two migrations run at once',
    )
  }
  lines.push(renewalLine(lock))
  return lines
}
