/** C4, C6, C7: what became of the effects, fenced and not. */
import { overlaps } from './story.js'

/** @typedef {import('../history.js').Line} Line */
/** @typedef {import('./story.js').Evidence} Evidence */
/** @typedef {import('./story.js').Story} Story */
/** @typedef {import('./index.js').Verdict} Verdict */

/** How long a holder may need to hear that an operator has taken its lock away. */
const noticeMs = 1500

/**
 * What was acknowledged is there, what was refused is not. An unknown outcome may be either.
 * @param {Evidence} evidence
 * @param {Story} story
 * @returns {Verdict}
 */
export function acknowledgedMeansThere({ facts }, { all }) {
  const there = new Set(facts.filter(isEffect).map(({ id }) => id))
  const violations = []
  let checked = 0
  for (const { _id, outcome, kind } of all('effectEnded')) {
    if (outcome === 'unknown' || kind === 'long') continue
    checked += 1
    const expected = outcome === 'done'
    if (there.has(_id) !== expected) {
      violations.push(`${_id} ended "${outcome}", and is ${expected ? 'not ' : ''}in the database`)
    }
  }
  for (const { name, run, transaction } of all('migrationFinished')) {
    if (!transaction) continue
    checked += 1
    if (!there.has(`${name}/${run}/0`)) violations.push(`${name} was applied without its effect`)
  }
  return { checked, violations }
}

/** @param {import('../facts.js').Fact} fact */
const isEffect = ({ kind, after }) => (kind === 'effect' || kind === 'plain') && after !== null

/**
 * Writes without a fence can come late, from a holder that was paused or cut off between its last
 * look and the write; from no other.
 *
 * @param {Evidence} evidence
 * @param {Story} story
 * @returns {Verdict}
 */
export function lateWritesAreExplained({ facts }, story) {
  const begun = new Map(story.all('effectBegun').map((line) => [line._id, line]))
  const violations = []
  /** @type {Record<string, number>} */
  const explained = {}
  let checked = 0
  let highest = 0
  for (const { kind, id, after, wall } of facts) {
    if (kind === 'fence' && after) highest = Math.max(highest, after.token)
    if (kind !== 'plain' || !after || after.token === null) continue
    checked += 1
    if (after.token >= highest) continue
    const why = explanation(begun.get(id), story.local(wall), story)
    if (why) explained[why] = (explained[why] ?? 0) + 1
    else violations.push(`${id} (token ${after.token}) was written under token ${highest}`)
  }
  return { checked, violations, notes: explained }
}

/**
 * @param {Line | undefined} begun
 * @param {number} until
 * @param {Story} story
 * @returns {string | null}
 */
function explanation(begun, until, { pausesOf, troubles, all }) {
  if (!begun) return null
  const spans = [...pausesOf(begun.pid), ...troubles]
  const span = spans.find((each) => overlaps(each, begun.t - noticeMs, until))
  if (span) return span.why
  const gone = [...all('unlockBegun'), ...all('unlocked'), ...all('killed')].some(({ t }) => {
    return t > begun.t - 2 * noticeMs && t < until + noticeMs
  })
  return gone ? 'unlock or kill' : null
}

/**
 * An operation that was at work when a later run armed must have ended before.
 * @param {Evidence} evidence
 * @returns {Verdict}
 */
export function nothingOutlivesTheNextArm({ facts }) {
  /** @type {Map<string, { token: number, before: number, after: number }>} */
  const operations = new Map()
  let highest = 0
  for (const { kind, after } of facts) {
    if (kind === 'fence' && after) highest = Math.max(highest, after.token)
    if (kind !== 'bulk' || !after?.op || after.token === null) continue
    const known = operations.get(after.op) ?? { token: after.token, before: 0, after: 0 }
    if (after.token < highest) known.after += 1
    else known.before += 1
    operations.set(after.op, known)
  }
  const told = [...operations]
  const violations = told
    .filter(([, { before, after }]) => before > 0 && after > 0)
    .map(([op, { after }]) => `${op} changed ${after} documents after a later run had armed`)
  const late = told.filter(([, { before, after }]) => before === 0 && after > 0).length
  return { checked: operations.size, violations, notes: late ? { 'sent too late': late } : {} }
}
