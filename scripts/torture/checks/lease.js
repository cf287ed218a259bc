/** C5, C8, C10: who held the lock, by the lock document and by what the processes believed. */

/** @typedef {import('../facts.js').Fact} Fact */
/** @typedef {import('./story.js').Evidence} Evidence */
/** @typedef {import('./story.js').Run} Run */
/** @typedef {import('./story.js').Story} Story */
/** @typedef {import('./index.js').Verdict} Verdict */

/** A lease of 1.x lasts at least so long, whatever its writer was configured with. */
const legacyTtlMs = 60_000
/** An answer takes no longer: the core gives up on it after a quarter of the TTL. */
const answerShare = 0.25
const trustShare = 0.95
/** The server's clock is compared with ours once. */
const clockSlackMs = 50

/**
 * Three ways to see two holders: a lease that was taken before it was over, an acknowledged renewal
 * that no majority knows, and two who believed it at the same time.
 *
 * @param {Evidence} evidence
 * @param {Story} story
 * @returns {Verdict}
 */
export function oneHolderAtATime({ facts, ttlMs }, story) {
  const locks = facts.filter(({ kind }) => kind === 'lock')
  const violations = [
    ...locks.flatMap(robbed),
    ...unknownToTheMajority(locks, story.runs),
    ...overlapping(story, ttlMs, deletions(locks, story)),
  ]
  return { checked: story.runs.length, violations }
}

/** @param {Fact} fact @returns {string[]} */
function robbed({ before, after, wall }) {
  const ours = after?.leaseOwner === after?.owner
  if (!before || !after || before.owner === after.owner || !ours) return []
  const end = endOf(before)
  if (end <= wall) return []
  return [`${after.runId} took the lock of ${before.runId ?? before.pid} ${end - wall} ms early`]
}

/** @param {import('../oplog.js').Document} lock */
function endOf({ owner, leaseOwner, expiresAt, lockedAt }) {
  if (leaseOwner === owner) return Number(expiresAt)
  return Math.max(Number(expiresAt ?? 0), Number(lockedAt) + legacyTtlMs)
}

/** @param {readonly Fact[]} locks @param {readonly Run[]} runs */
function unknownToTheMajority(locks, runs) {
  /** @type {Map<string, number>} */
  const beats = new Map()
  for (const { after } of locks) {
    if (after) beats.set(after.owner, Math.max(after.beats ?? 0, beats.get(after.owner) ?? 0))
  }
  return runs.flatMap(({ run, owner, renewals }) => {
    const known = beats.get(owner)
    if (known === undefined) return [`${run} was told that it had the lock, and never had`]
    const told = renewals.map((renewal) => renewal.beats)
    const last = Math.max(0, ...told)
    if (last > known) return [`${run} was told of renewal ${last}, and only ${known} are known`]
    // A renewal that is rolled back is counted again.
    const twice = told.find((count, index) => told.indexOf(count) < index)
    return twice === undefined ? [] : [`${run} was told of renewal ${twice} twice`]
  })
}

/** @param {readonly Fact[]} locks @param {Story} story */
function deletions(locks, { local }) {
  const gone = locks.filter(({ before, after }) => before && !after)
  return new Map(gone.map(({ before, wall }) => [String(before?.owner), local(wall)]))
}

/**
 * Only what is certain counts: a run is said to begin when it was told of its lease, which is later
 * than the truth, and its trust is said to end as early as it can have.
 *
 * @param {Story} story
 * @param {number} ttlMs
 * @param {Map<string, number>} deletedAt
 */
function overlapping(story, ttlMs, deletedAt) {
  const held = story.runs.map((run) => {
    const to = trustedUntil(run, story, ttlMs)
    const deleted = deletedAt.get(run.owner) ?? to
    // A release is told of when it is answered; the holder has given up when it was sent.
    const released = deleted > run.workedAt
    return { run, from: run.acquiredAt, to: released ? Math.min(to, deleted) : to }
  })
  return held.flatMap((earlier, index) => {
    const later = held.slice(index + 1).find(({ from }) => from < earlier.to)
    // An operator takes the lock away without asking; its holder finds out later.
    if (!later || wasUnlocked(earlier.run, story, deletedAt)) return []
    const ms = Math.round(earlier.to - later.from)
    return [`${later.run.run} began ${ms} ms before the trust of ${earlier.run.run} had ended`]
  })
}

/**
 * Was the lock removed while an operator was about it? What he removes he may have begun to remove
 * before its holder was told that he has it.
 *
 * @param {Run} run
 * @param {Story} story
 * @param {Map<string, number>} deletedAt
 */
function wasUnlocked({ owner }, { all }, deletedAt) {
  const at = deletedAt.get(owner)
  if (at === undefined) return false
  return all('unlockBegun').some((begun) => {
    const ended = all('unlocked').find(({ t }) => t > begun.t)
    return at > begun.t - clockSlackMs && at < (ended?.t ?? Number.POSITIVE_INFINITY) + clockSlackMs
  })
}

/** @param {Run} run @param {Story} story @param {number} ttlMs */
function trustedUntil({ acquiredAt, renewals, endedAt, pid }, { pausesOf }, ttlMs) {
  const told = renewals.at(-1)?.at ?? acquiredAt
  let sent = told - answerShare * ttlMs
  for (const { from, to } of pausesOf(pid).toReversed()) {
    // Whatever was told after a pause may have been known before it.
    if (from < told && to > sent) sent = Math.min(sent, from - answerShare * ttlMs)
  }
  return Math.min(sent + trustShare * ttlMs, endedAt ?? Number.POSITIVE_INFINITY)
}

/**
 * After the last fault, and with runs that want the lock, it is never without a holder for long.
 * @param {Evidence} evidence
 * @param {Story} story
 * @returns {Verdict}
 */
export function theLockIsTakenAgain({ ttlMs }, { runs, all }) {
  const [calm] = all('calmed')
  const [end] = all('dismissed')
  if (!calm || !end) return { checked: 0, violations: ['The torture never came to its calm'] }
  const allowed = 1.1 * ttlMs + 8000
  const violations = []
  let freeSince = calm.t
  let longest = 0
  const holding = runs.filter(({ acquiredAt, endedAt }) => {
    return acquiredAt < end.t && (endedAt ?? end.t) > calm.t
  })
  for (const { acquiredAt, endedAt } of [...runs, { acquiredAt: end.t, endedAt: end.t }]) {
    if (acquiredAt > freeSince && acquiredAt <= end.t) {
      longest = Math.max(longest, acquiredAt - freeSince)
    }
    freeSince = Math.max(freeSince, Math.min(endedAt ?? end.t, end.t))
  }
  if (longest > allowed) violations.push(`Nobody took the lock for ${Math.round(longest)} ms`)
  const notes = { 'longest pause ms': Math.round(longest) }
  return { checked: holding.length, violations, notes }
}

/** @param {Evidence} evidence @returns {Verdict} */
export function everyShapeIsKnown({ facts }) {
  const documents = facts.filter(({ kind }) => kind === 'lock' || kind === 'fence')
  const violations = documents.flatMap(({ kind, after }) => {
    if (after === null) return []
    const known = kind === 'fence' ? isFence(after) : isOurs(after) || isOld(after)
    return known ? [] : [`A ${kind} in no known shape: ${JSON.stringify(after)}`]
  })
  return { checked: documents.length, violations }
}

/** @param {import('../oplog.js').Document} lock */
function isOurs({ v, owner, leaseOwner, runId, appName, beats, ...dates }) {
  const texts = [owner, runId, appName].every((value) => typeof value === 'string')
  return v === 2 && texts && owner === leaseOwner && Number.isInteger(beats) && haveDates(dates)
}

/** @param {Record<string, unknown>} lock */
const haveDates = ({ acquiredAt, lockedAt, expiresAt }) =>
  [acquiredAt, lockedAt, expiresAt].every((value) => value instanceof Date)

/** @param {import('../oplog.js').Document} lock */
const isOld = ({ owner, leaseOwner, lockedAt }) =>
  typeof owner === 'string' && owner !== leaseOwner && lockedAt instanceof Date

/** @param {import('../oplog.js').Document} fence */
const isFence = ({ token, owner, at, unsettled }) =>
  Number.isInteger(token) &&
  typeof owner === 'string' &&
  at instanceof Date &&
  Array.isArray(unsettled)
