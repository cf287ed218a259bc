/**
 * What is odd about the lock, the fence and the register of runs. Pure. Anybody may have written to
 * these documents: nothing is expected of their fields.
 *
 * Who may take a lock over is judged as the core does (`src/lock/rules.rs`, `src/lock/wait.rs`).
 */
import { escapeText, plural } from '../text.js'
import { note, ok, problem } from './finding.js'

/** @import { Document } from 'mongodb' */
/** @import { LockInfo, MmkConfig } from '../../index.d.ts' */
/** @import { ServerFacts } from './facts.js' */
/** @import { Finding } from './finding.js' */

const DEFAULT_LOCK_COLLECTION = '_mmk_locks'
/** Under this, a lease has no timing that anybody could watch it by. */
const LEAST_TTL_MS = 1000
const UNLOCK = '`mmk unlock`, once you are sure that nobody runs'

/**
 * @param {{ server: ServerFacts, config: Readonly<MmkConfig>, lock: LockInfo | null }} facts
 * @returns {Finding[]}
 */
export function lockFindings({ server, config: { lockCollection }, lock }) {
  const list = []
  if (lockCollection !== DEFAULT_LOCK_COLLECTION) {
    const says = `lockCollection is "${escapeText(lockCollection)}": runs with another setting don't take turns with yours`
    const todo = `leave it at ${DEFAULT_LOCK_COLLECTION}, unless all have the same`
    list.push(note('lock', says, todo))
  }
  const document = server.locks?.find(({ _id }) => _id === 'mmk_lock')
  if (lock === null || document === undefined) return [...list, ok('lock', 'free')]
  return [...list, holderFinding(lock, document, server.electionId)]
}

/**
 * @param {LockInfo} lock
 * @param {Document} document the same as it is stored
 * @param {string | null} electionId of the primary of now
 * @returns {Finding}
 */
function holderFinding(lock, document, electionId) {
  const who = `pid ${lock.pid ?? '?'} on ${escapeText(lock.host ?? 'an unknown host')}`
  const old = document.leaseOwner === undefined ? ', a runner of version 1' : ''
  const own = !old && document.leaseOwner === document.owner
  const { expired, expiresAt } = lock
  if (!expired && expiresAt === null) {
    const says = `held by ${who}, and nothing in it says until when that we can read`
    if (!own || !canBeWatched(document)) {
      return problem('lock', `${says}: it is never taken over`, UNLOCK)
    }
    return problem('lock', `${says}: only a run that waits takes it over`, UNLOCK)
  }
  if (!expired) return note('lock', `held by ${who}${old}`, '`mmk unlock` shows more')
  if (!own || String(lock.owner) === 'null' || sameElection(document, electionId)) {
    return note('lock', `left by ${who}${old}: the next run takes it over`)
  }
  const primary = `left by ${who}, under another primary than the one of now`
  if (canBeWatched(document)) {
    const seconds = Math.ceil((document.ttlMs * 0.95) / 1000)
    const says = `${primary}: the next run takes it over once it has seen it stand still for ${seconds} s`
    return note('lock', says)
  }
  const says = `${primary}, and without a ttlMs and beats to watch it by: no run takes it over`
  return problem('lock', says, UNLOCK)
}

/** @param {Document} document */
function canBeWatched({ owner, beats, ttlMs }) {
  return typeof owner === 'string' && Number.isInteger(beats) && ttlMs >= LEAST_TTL_MS
}

/** @param {Document} document @param {string | null} now */
function sameElection({ electionId }, now) {
  return electionId === undefined || electionId === null
    ? now === null
    : now !== null && escapeText(electionId) === now
}

/** @param {ServerFacts} server @param {Readonly<MmkConfig>} config @returns {Finding[]} */
export function fenceFindings({ locks }, { lockCollection }) {
  const fence = locks?.find(({ _id }) => _id === 'mmk_fence')
  return fence === undefined ? [] : [...tokenFindings(fence, lockCollection), ...register(fence)]
}

/** @param {Document} fence @param {string} lockCollection @returns {Finding[]} */
function tokenFindings({ token }, lockCollection) {
  if (Number.isSafeInteger(token) && token >= 0) return []
  const found =
    token === undefined
      ? 'there is none'
      : `it is ${typeof token === 'string' ? `the text "${escapeText(token)}"` : described(token)}`
  const says = `the token must be a whole number that can be raised, and ${found}: no run can rely on it, and up may be refused`
  const where = `db.getCollection(${JSON.stringify(escapeText(lockCollection))})`
  const set = "updateOne({ _id: 'mmk_fence' }, { $set: { token: NumberLong('<n>') } })"
  const todo = `while nothing runs, in mongosh: ${where}.${set}, where <n> is above every number that it ever was (each run adds one)`
  return [problem('fence', says, todo)]
}

/** @param {unknown} value */
function described(value) {
  if (Array.isArray(value)) return 'a list'
  const plain = typeof value === 'object' && value !== null && !('_bsontype' in value)
  return plain && !(value instanceof Date) ? 'a document' : escapeText(value)
}

/** @param {Document} fence @returns {Finding[]} */
function register({ unsettled }) {
  if (unsettled === undefined) return []
  if (!Array.isArray(unsettled)) {
    const says = `the fence's register of them can't be read: it is ${described(unsettled)}`
    return [note('runs', says, 'the next run writes a new one')]
  }
  const list = []
  const runs = unsettled.filter(isRun)
  if (runs.length > 0) {
    const who = runs.map(({ pid, host }) => `pid ${described(pid)} on ${described(host)}`)
    const says = `${runs.length} that did not end cleanly, or still go on: ${who.join(', ')}`
    list.push(
      note('runs', says, 'the next run looks for what they left on the server, and stops it'),
    )
  }
  const odd = unsettled.length - runs.length
  if (odd > 0) {
    const says = `${plural(odd, 'entry', 'entries')} of the fence's register can't be read: no run looks after them`
    list.push(note('runs', says, "remove them by hand: `unsettled` of `_id: 'mmk_fence'`"))
  }
  return list
}

/** Would a run look for what it left? As `unsettled_run` in the core. @param {any} entry */
function isRun(entry) {
  return typeof entry?.runId === 'string' && typeof entry.changelog === 'string'
}
