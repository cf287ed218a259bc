/**
 * What a failure that the core reported becomes: an error with the text that users log.
 *
 * Promises: `cause` is the identical value that the user's code threw, and an error of ours that has
 * crossed the core comes back as the same object.
 */
import { errorOf, isMmkError } from './errors.js'
import { explain } from './explain.js'
import { executionFailureText } from './failed-body.js'
import { busyLockText, joinText } from './messages.js'
import { lockInfo } from './shapes.js'
import { suggestName } from './suggest.js'
import { createCauses } from './thrown.js'

/** @import { Failure, RunResult } from './contract.d.ts' */
/** @import { MmkError } from './errors.js' */
/** @import { Causes } from './thrown.js' */

/**
 * The error for a failure that the core reported.
 * @param {Failure} failure
 * @param {Causes} [causes] where the host kept what was thrown
 * @param {RunResult[]} [results] what the run had done before it failed
 * @returns {MmkError}
 */
export function fromFailure(failure, causes = createCauses(), results = []) {
  const suppressed = failure.suppressed.map((later) => fromFailure(later, causes))
  const kept = failure.causeId === null ? undefined : causes.get(failure.causeId)
  if (isOurs(kept, failure)) {
    kept.suppressed.push(...suppressed)
    Object.assign(kept.context, runFacts(failure))
    return kept
  }
  const { message, context } = describe(failure, results)
  const { certainty } = failure
  const hint = committedHint(failure) ?? explanation(failure, kept) ?? hintOf(failure)
  const details = { context, hint, certainty, suppressed }
  const withCause = failure.causeId === null ? details : { ...details, cause: kept }
  return errorOf(failure.code, message, withCause)
}

/**
 * The core takes every transaction of a failed body for rolled back; this one was committed.
 * @param {Failure} failure
 */
function committedHint({ code, context }) {
  const { committed } = /** @type {any} */ (context.details ?? {})
  if (code !== 'MIGRATION_EXECUTION_FAILED' || committed !== true) return null
  return (
    'look at what it committed and undo it, or have the migration run over it; leave commit to ' +
    'mongo-migrate-kit, then run again'
  )
}

/**
 * What the server meant by refusing an operation of a body, where it is about transactions.
 * @param {Failure} failure
 * @param {unknown} thrown
 */
function explanation({ code, context }, thrown) {
  if (code !== 'MIGRATION_EXECUTION_FAILED') return null
  const { attempts, caught } = /** @type {any} */ (context.details ?? {})
  const transaction = context.transaction === true
  return explain(thrown, { name: String(context.name), transaction, attempts, caught })
}

/**
 * Did the host throw this very error, and the core only carry it?
 * @param {unknown} kept
 * @param {Failure} failure
 * @returns {kept is MmkError}
 */
function isOurs(kept, failure) {
  return isMmkError(kept) && kept.code === failure.code && kept.message === failure.message
}

/**
 * What the core adds to the failure of a run, whatever failed.
 * @param {Failure} failure
 */
function runFacts({ context }) {
  const facts = ['done', 'notStarted', 'metrics'].map((fact) => [fact, context[fact]])
  return Object.fromEntries(facts.filter(([, value]) => value !== undefined))
}

/** @param {Failure} failure */
function hintOf({ code, hint, context: { filename, available, details } }) {
  if (code === 'MIGRATION_EXECUTION_FAILED' && /** @type {any} */ (details)?.outside) {
    return 'what it wrote outside its transaction may still be there: pass { session } to each write, and run again'
  }
  if (code !== 'MIGRATION_FILE_NOT_FOUND' || !Array.isArray(available)) return hint
  const meant = suggestName(String(filename), available)
  return meant === null ? hint : `did you mean "${meant}"?`
}

/**
 * The text that users log, and the context in its public shape.
 * @param {Failure} failure
 * @param {RunResult[]} results
 */
function describe(failure, results) {
  const { code, message } = failure
  /** @type {Record<string, any>} */
  const context = { ...failure.context }
  if (typeof context.cause?.message === 'string') context.cause = context.cause.message
  if (code === 'LOCK_ALREADY_HELD') {
    context.holder = context.holder ? lockInfo(context.holder) : null
    return {
      message: joinText(busyLockText(context.holder, { waitedMs: context.waitedMs })),
      context,
    }
  }
  if (code === 'MIGRATION_EXECUTION_FAILED') {
    const { location, attempts, committed, outside } = context.details ?? {}
    if (location !== undefined) context.location = location
    if (attempts !== undefined) context.attempts = attempts
    if (committed === true) context.committed = true
    if (outside !== undefined) context.outside = outside
    const applied = results.filter((result) => result.status !== 'skipped')
    return { message: executionMessage(message, context, applied), context }
  }
  return { message, context }
}

/**
 * @param {string} message
 * @param {Record<string, any>} facts
 * @param {RunResult[]} done
 */
function executionMessage(message, facts, done) {
  return joinText(
    executionFailureText({
      name: String(facts.name ?? ''),
      direction: facts.direction === 'down' ? 'down' : 'up',
      reason: String(facts.cause ?? message),
      location: typeof facts.location === 'string' ? facts.location : null,
      transaction: typeof facts.transaction === 'boolean' ? facts.transaction : null,
      committed: facts.committed === true,
      outside: Array.isArray(facts.outside) ? facts.outside : [],
      done: done.map((result) => result.file),
      notStarted: Array.isArray(facts.notStarted) ? facts.notStarted : [],
    }),
  )
}
