/**
 * The checker: histories and facts in, verdicts out. Pure, so that planted histories can show that
 * each check sees what it is for.
 */
import { entriesMoveAsTheyShould } from './changelog.js'
import {
  acknowledgedMeansThere,
  lateWritesAreExplained,
  nothingOutlivesTheNextArm,
} from './effects.js'
import {
  effectsInTheOrderOfTokens,
  noEffectBehindANewerFence,
  noTokenTwice,
  oneOwnerForEachToken,
} from './fencing.js'
import { everyShapeIsKnown, oneHolderAtATime, theLockIsTakenAgain } from './lease.js'
import { nobodyBreaks } from './processes.js'
import { tell } from './story.js'

/**
 * @typedef {object} Verdict
 * @property {number} checked how many things were looked at
 * @property {string[]} violations
 * @property {Record<string, number>} [notes] allowed, and worth knowing
 *
 * @typedef {{ id: string, promise: string } & Verdict} Finding
 */

/**
 * @typedef {(evidence: import('./story.js').Evidence, story: import('./story.js').Story) => Verdict} Check
 * @type {readonly [string, string, Check][]}
 */
const checks = [
  ['C0', 'no fenced effect is committed behind a newer fence', noEffectBehindANewerFence],
  ['C1', 'fenced effects are committed in the order of their tokens', effectsInTheOrderOfTokens],
  ['C2', 'a token has one owner', oneOwnerForEachToken],
  ['C3', 'no token is given out twice', noTokenTwice],
  ['C4', 'what was acknowledged is there, what was refused is not', acknowledgedMeansThere],
  ['C5', 'one holder at a time', oneHolderAtATime],
  ['C6', 'late writes without a fence have a reason', lateWritesAreExplained],
  ['C7', 'no operation outlives the arm of the next run', nothingOutlivesTheNextArm],
  ['C8', 'the lock is taken again', theLockIsTakenAgain],
  ['C9', 'entries move as they should, with their effects', entriesMoveAsTheyShould],
  ['C10', 'the lock and the fence have known shapes', everyShapeIsKnown],
  ['C11', 'no process breaks', nobodyBreaks],
]

/** @param {import('./story.js').Evidence} evidence @returns {Finding[]} */
export function check(evidence) {
  const story = tell(evidence)
  return checks.map(([id, promise, verdict]) => ({ id, promise, ...verdict(evidence, story) }))
}
