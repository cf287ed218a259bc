/**
 * The core's plain shapes as the public ones: `Date`s for instants, 1.x's field names.
 */

/** @import * as core from './contract.d.ts' */
/** @import { LockInfo, MigrationSummary, RunResult, StatusRow } from '../index.d.ts' */

/** @param {number | null} ms */
const date = (ms) => (ms === null ? null : new Date(ms))

/**
 * @param {core.Holder} holder
 * @returns {LockInfo}
 */
export function lockInfo({ user, now, lockedAt, acquiredAt, expiresAt, ...rest }) {
  return {
    ...rest,
    executedBy: user,
    lockedAt: date(lockedAt),
    acquiredAt: date(acquiredAt),
    expiresAt: date(expiresAt),
    now: new Date(now),
  }
}

/**
 * @param {core.StatusRow} row
 * @returns {StatusRow}
 */
export function statusRow({ durationMs, description, runId, ...row }) {
  return {
    ...row,
    appliedAt: date(row.appliedAt),
    startedAt: date(row.startedAt),
    duration: durationMs,
    ...(description === null ? {} : { description }),
  }
}

/**
 * @param {core.RunResult} result
 * @returns {RunResult}
 */
export function runResult({ file, status, durationMs, batch, reason, transaction, attempts }) {
  return {
    file,
    status,
    ...(durationMs === null ? {} : { duration: durationMs }),
    ...(batch === null || status === 'reverted' ? {} : { batch }),
    ...(reason === null ? {} : { reason }),
    transaction,
    ...(attempts > 1 ? { attempts } : {}),
  }
}

/**
 * @param {core.RunReport} report
 * @returns {MigrationSummary}
 */
export function summary({ results, upToDate, waited, waitedMs, metrics }) {
  return { applied: results.map(runResult), upToDate, waited, waitedMs, metrics }
}
