/**
 * The JSON documents of the command line, in the version that was asked for. Pure, but for what it
 * remembers of the one command that it is made for.
 *
 * Version 1 is what 1.x prints. Version 2 is one shape for every command, `schema/output-2.json`: what
 * is not known is `null`, and nothing is ever left out.
 */
import { DOCS, docsUrl } from '../errors.js'
import { redactData } from '../redact.js'
import { lockInfo } from '../shapes.js'
import { failureDocument } from './failure.js'

/** @import { Event, Metrics, RunReport, RunResult, StatusReport } from '../contract.d.ts' */
/** @import { LockInfo, StatusRow } from '../../index.d.ts' */

/** `'lines'`: events, one on a line, and then the document of version 2 on the last. */
/** @typedef {1 | 2 | 'lines'} Form */

export const SCHEMA_VERSION = 2

/**
 * What a command has to do with the lock.
 * @typedef {{
 *   taken: boolean
 *   runId: string | null
 *   fencingToken: number | null
 *   tookOverFrom: string | null
 *   waitedMs: number | null
 *   holder: LockInfo | null
 * }} LockFacts
 */

/** @typedef {ReturnType<typeof createDocuments>} Documents */

/** @type {Readonly<LockFacts>} */
const NO_LOCK = Object.freeze({
  taken: false,
  runId: null,
  fencingToken: null,
  tookOverFrom: null,
  waitedMs: null,
  holder: null,
})

/**
 * @param {Form} form
 * @param {string | null} command `null`: the command line names none
 */
export function createDocuments(form, command) {
  /** @type {{ migrations: object[], lock: LockFacts | null, metrics: Metrics | null }} */
  const known = { migrations: [], lock: null, metrics: null }
  const compact = form === 'lines'
  const write = (/** @type {object} */ document) => toJson(document, compact ? undefined : 2)
  const envelope = () => ({ schemaVersion: SCHEMA_VERSION, command, ...known })
  return {
    /** @param {Event} event @returns {string | null} a line for it, where events are asked for */
    observe(event) {
      known.lock = lockAfter(event, known.lock)
      known.migrations.push(...doneBy(event))
      return compact ? toJson(redactData(event)) : null
    },
    /** @param {RunReport | StatusReport} report what a run or a look at the state came to */
    conclude(report) {
      if ('results' in report) {
        known.migrations = report.results
        known.metrics = report.metrics
        known.lock = { ...(known.lock ?? NO_LOCK), waitedMs: report.waitedMs }
      } else known.lock = { ...NO_LOCK, holder: report.lock && lockInfo(report.lock) }
    },
    /**
     * @param {unknown} document as 1.x has it
     * @param {Record<string, unknown>} [fields] the same for version 2, where that is no list and
     *   not these very fields
     */
    success: (document, fields) =>
      write(form === 1 ? Object(document) : { ...envelope(), ...(fields ?? fieldsOf(document)) }),
    /** @param {unknown} thrown */
    failure(thrown) {
      const { error } = failureDocument(thrown)
      if (form === 1) return write({ error })
      if (error.code === 'LOCK_ALREADY_HELD') known.lock = lockInTheWay(error.details)
      known.metrics = metricsOf(thrown) ?? known.metrics
      return write({ ...envelope(), error: { ...error, ...moreOf(thrown, error.code) } })
    },
    /** What the core needs to print the failure itself when the event loop is blocked. */
    frame() {
      const document = form === 1 ? {} : envelope()
      return JSON.stringify({ document, docs: form === 1 ? null : DOCS, compact })
    },
  }
}

/**
 * JSON that shows on a terminal what it says: names from elsewhere may hold what moves the cursor or
 * turns the writing around.
 * @param {object} value
 * @param {number} [indent]
 */
function toJson(value, indent) {
  return JSON.stringify(value, null, indent).replace(UNSHOWN, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** DEL, the controls of C1, and what Unicode has for directions and line ends. */
const UNSHOWN = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/**
 * @param {LockInfo | null} holder
 * @returns {LockFacts}
 */
export function heldBy(holder) {
  return { ...NO_LOCK, holder }
}

/**
 * @param {Event} event
 * @param {LockFacts | null} before
 * @returns {LockFacts | null}
 */
function lockAfter(event, before) {
  const lock = before ?? NO_LOCK
  switch (event.type) {
    case 'lockWaiting':
      return { ...lock, holder: lockInfo(event.holder) }
    case 'lockAcquired':
      return {
        ...lock,
        taken: true,
        runId: event.runId,
        tookOverFrom: event.tookOverFrom,
        holder: null,
      }
    case 'lockArmed':
      return { ...lock, fencingToken: event.fencingToken }
    default:
      return before
  }
}

/**
 * What was done before a failure, from what was told of it.
 * @param {Event} event
 * @returns {RunResult[]}
 */
function doneBy(event) {
  switch (event.type) {
    case 'migrationFinished': {
      const { name: file, status, durationMs, batch, transaction, attempts } = event
      return [{ file, status, durationMs, batch, reason: null, transaction, attempts }]
    }
    case 'migrationSkipped':
      return [skipped(event.name, 'skipped', event.reason)]
    case 'migrationMarked':
      return [skipped(event.name, event.status, event.reason)]
    default:
      return []
  }
}

/**
 * @param {string} file
 * @param {RunResult['status']} status
 * @param {string | null} reason
 * @returns {RunResult}
 */
function skipped(file, status, reason) {
  const nothing = { durationMs: null, batch: null, transaction: false, attempts: 0 }
  return { file, status, reason, ...nothing }
}

/**
 * The numbers of the run that failed, if it was one.
 * @param {any} thrown
 * @returns {Metrics | null}
 */
function metricsOf(thrown) {
  return thrown?.context?.metrics ?? null
}

/** @param {Record<string, any>} details @returns {LockFacts} */
function lockInTheWay({ holder, waitedMs }) {
  return { ...NO_LOCK, holder: holder ?? null, waitedMs: waitedMs ?? null }
}

/**
 * What version 2 says of an error beyond 1.x.
 * @param {unknown} thrown
 * @param {string | null} code
 */
function moreOf(thrown, code) {
  const certainty =
    thrown instanceof Error && 'certainty' in thrown ? String(thrown.certainty) : 'unknown'
  return { certainty, docsUrl: code === null ? null : docsUrl(code) }
}

/** @param {any} document of 1.x: a list of rows, or an object */
function fieldsOf(document) {
  if (!Array.isArray(document)) return document
  // A run's own results are known already, with nothing left out.
  return document.some((row) => 'state' in row) ? { migrations: document.map(fullRow) } : {}
}

/** @param {StatusRow} row as version 2 has it */
export function fullRow({ duration, description, ...row }) {
  return { ...row, durationMs: duration, description: description ?? null }
}
