/**
 * What the server's errors in transactions mean for a migration, and the way out.
 *
 * Promises: pure; `null` for an error that says enough by itself. The server's messages are those of
 * MongoDB 4.2 to 8; an unknown wording still gets the general way out.
 */

import { causesOf } from './causes.js'
import { peek } from './location.js'
import { escapeText } from './text.js'

/**
 * @typedef {object} Facts
 * @property {string} name the migration
 * @property {boolean} transaction did its body run in our transaction?
 * @property {number} [attempts] how often it was tried
 * @property {{ command: string, message: string } | null} [caught] the error that ended it before
 *
 * @typedef {object} Row
 * @property {(string | number)[]} codes as `code` or `codeName`; older servers leave out one of them
 * @property {(message: string, facts: Facts) => string} text
 */

const SLOW =
  'a transaction may last 60 seconds by default (transactionLifetimeLimitSeconds): do less in one ' +
  'migration, or'

/** @type {readonly Row[]} */
const ROWS = [
  { codes: [263, 'OperationNotSupportedInTransaction'], text: notAllowed },
  { codes: [20], text: standaloneText },
  {
    codes: [251, 'NoSuchTransaction', 225, 290, 'TransactionExceededLifetimeLimitSeconds'],
    text: (_, facts) => goneText(facts),
  },
  {
    codes: [257, 'TransactionTooLarge', 'TransactionTooLargeForCache', 10334, 'BSONObjectTooLarge'],
    text: (_, facts) =>
      'It is too large for one transaction (older servers take 16 MB of changes): split it into ' +
      `several files, or ${optOut(facts)}`,
  },
  {
    codes: [117, 'ConflictingOperationInProgress'],
    text: () =>
      'The operations of a transaction must run one after the other: await each before the next, ' +
      'and use no Promise.all',
  },
  {
    codes: [112, 'WriteConflict'],
    text: (_, facts) =>
      `Other writers kept changing the same documents${tried(facts)}: run it when they are quiet, ` +
      `raise transactionRetryTimeoutMs, or ${optOut(facts)}`,
  },
  {
    codes: [246, 'SnapshotUnavailable'],
    text: (_, facts) =>
      `A collection or an index was changed while it ran${tried(facts)}: create collections and ` +
      'indexes in an earlier migration',
  },
]

/** Reads that need no transaction, so that leaving the session out is enough. */
const READS = ['listCollections', 'listIndexes', 'dbStats', 'collStats', '$collStats', 'explain']

/** @type {readonly [RegExp, string, string][]} a message, and what stands before and after its name */
const OPERATIONS = [
  [/Cannot run '([\w.]+)'/, '`', '`'],
  [/(\$\w+) cannot be used in a transaction/, '`', '`'],
  [/Stage not supported inside of a multi-document transaction: (\$\w+)/, '`', '`'],
  [/Cannot create new indexes on existing collection (\S+)/, '`createIndexes` on ', ''],
  [/Cannot create namespace (\S+)/, 'Creating the collection ', ''],
  [/Cannot create a (view)/, 'Creating a ', ''],
  [/Collection '([^']+)' is a capped/, 'A write to the capped collection ', ''],
  [/against the '([^']+)' (?:database|collection)/, 'An operation on ', ''],
]

/**
 * @param {unknown} thrown
 * @param {Facts} facts
 * @returns {string | null}
 */
export function explain(thrown, facts) {
  for (const error of causesOf(thrown)) {
    const marks = [peek(error, 'code'), peek(error, 'codeName')]
    const message = String(peek(error, 'message') ?? '')
    const row = ROWS.find(({ codes }) => codes.some((code) => marks.includes(code)))
    if (/does not support retryable writes/.test(message)) return standaloneText(message)
    if (row && (facts.transaction || row.text === standaloneText)) {
      return row.text(message, facts) || null
    }
  }
  return facts.attempts ? `It was given up${tried(facts)}; run again` : null
}

/** @param {Facts} facts */
function optOut({ name }) {
  return `put \`export const useTransaction = false\` into ${escapeText(name)}`
}

/** @param {Facts} facts */
function tried({ attempts = 1 }) {
  return attempts > 1 ? ` in all ${attempts} attempts` : ''
}

/**
 * @param {string} message
 * @param {Facts} facts
 */
function notAllowed(message, facts) {
  const { name, operation } = operationOf(message)
  const what = `${operation} can't run inside the transaction of ${escapeText(facts.name)}: `
  if (name === 'count') return `${what}use countDocuments, or ${optOut(facts)}`
  if (READS.includes(name)) return `${what}leave { session } out of this call, or ${optOut(facts)}`
  return `${what}${optOut(facts)}, or move it into a migration file of its own that says so`
}

/** @param {string} message */
function operationOf(message) {
  for (const [pattern, before, after] of OPERATIONS) {
    const name = pattern.exec(message)?.[1]
    if (name) return { name, operation: `${before}${escapeText(name)}${after}` }
  }
  return { name: '', operation: 'This operation' }
}

/** @param {string} message */
function standaloneText(message) {
  const about = /ransaction numbers are only allowed|does not support retryable writes/
  return about.test(message)
    ? 'Transactions need a replica set, and this server is a standalone: start it as a replica set ' +
        'of one member (mongod --replSet rs0, then rs.initiate())'
    : ''
}

/** @param {Facts} facts */
function goneText(facts) {
  const { caught } = facts
  if (caught) {
    const { command, message } = caught
    return (
      `An error inside a transaction ends it, also one that the migration catches: ${escapeText(command)} ` +
      `had failed with "${escapeText(message)}". Look before you write, or ${optOut(facts)}`
    )
  }
  return (
    `The server had ended its transaction${tried(facts)}: ${SLOW} ${optOut(facts)}. An error inside ` +
    'a transaction that the migration catches ends it too'
  )
}
