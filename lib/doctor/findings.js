/**
 * From facts to findings: what is well, what is worth knowing, what a person must look at, and what
 * to do. Pure.
 */
import { escapeText, plural } from '../text.js'
import { fenceFindings } from './fence.js'
import { note, ok, problem } from './finding.js'
import { neighbourFindings } from './neighbours.js'
import { missingPermissions } from './permissions.js'

/** @import { Document } from 'mongodb' */
/** @import { Neighbour } from '../contract.d.ts' */
/** @import { LockInfo, MmkConfig, StatusRow } from '../../index.d.ts' */
/** @import { ServerFacts } from './facts.js' */
/** @import { Finding } from './finding.js' */

/**
 * @typedef {object} Facts
 * @property {ServerFacts} server
 * @property {Readonly<MmkConfig>} config
 * @property {boolean} transactions can the core run transactions there?
 * @property {StatusRow[]} rows
 * @property {Neighbour[]} neighbours other tools' changelogs, while nothing of ours has run
 * @property {boolean} directoryFound
 * @property {LockInfo | null} lock
 */

const OLDEST_SERVER = 4.4
const DEFAULT_LOCK_COLLECTION = '_mmk_locks'
const STATES = ['running', 'applied', 'failed', 'reverted']
/** Clocks of machines that ask a time server differ by less. */
const CLOCK_TOLERANCE_MS = 5000
/** The unique index of mongo-migrate-kit 1.x. */
const OLD_INDEX = 'name_1'

/**
 * @param {Facts} facts
 * @returns {Finding[]}
 */
export function findings(facts) {
  const { server, config } = facts
  return [
    ...serverFindings(facts),
    ...clockFinding(server),
    ...permissionFindings(server, config),
    ...lockFindings(facts),
    ...fenceFindings(server),
    ...changelogFindings(server, config),
    ...neighbourFindings(facts.neighbours),
    ...fileFindings(facts),
  ]
}

/** @param {Facts} facts @returns {Finding[]} */
function serverFindings({ server: { version, topology }, transactions }) {
  const says = `MongoDB ${version ?? 'of an unknown version'}, ${topology}; both drivers are connected`
  const list = [ok('server', says)]
  if (version !== null && Number.parseFloat(version) < OLDEST_SERVER) {
    const todo = `use MongoDB ${OLDEST_SERVER} or later`
    list.push(problem('server', `MongoDB ${version} has not been tried`, todo))
  }
  if (transactions) list.push(ok('transactions', 'available'))
  else {
    const says = 'not available: migrations with `useTransaction` are refused, waiting polls'
    list.push(note('transactions', says, 'a replica set, also one of a single member, has them'))
  }
  return list
}

/** @param {ServerFacts} server @returns {Finding[]} */
function clockFinding({ clockOffsetMs }) {
  const seconds = (Math.abs(clockOffsetMs) / 1000).toFixed(1)
  const where = clockOffsetMs > 0 ? 'ahead of' : 'behind'
  if (Math.abs(clockOffsetMs) <= CLOCK_TOLERANCE_MS) return [ok('clock', "as the server's")]
  const says = `the server is ${seconds} s ${where} this machine; the lock goes by the server's clock alone`
  return [note('clock', says, 'runners of version 1 go by their own clock: set it right for them')]
}

/** @param {ServerFacts} server @param {Readonly<MmkConfig>} config @returns {Finding[]} */
function permissionFindings({ privileges }, config) {
  if (privileges === null) return [note('permissions', 'nobody has logged in')]
  const missing = missingPermissions(privileges, config)
  if (missing.length === 0) return [ok('permissions', 'all that runs need')]
  return missing.map(({ action, collection, without, vital }) => {
    const says = `${action} on ${escapeText(collection)} is not granted: ${without}`
    const todo = `grant ${action}, or the role readWrite on the database`
    return vital ? problem('permissions', says, todo) : note('permissions', says, todo)
  })
}

/** @param {Facts} facts @returns {Finding[]} */
function lockFindings({ server: { locks }, config: { lockCollection }, lock }) {
  const list = []
  if (lockCollection !== DEFAULT_LOCK_COLLECTION) {
    const says = `lockCollection is "${escapeText(lockCollection)}": runs with another setting don't take turns with yours`
    list.push(
      note('lock', says, `leave it at ${DEFAULT_LOCK_COLLECTION}, unless all have the same`),
    )
  }
  const document = locks?.find(({ _id }) => _id === 'mmk_lock')
  if (lock === null || document === undefined) return [...list, ok('lock', 'free')]
  const who = `pid ${lock.pid ?? '?'} on ${escapeText(lock.host ?? 'an unknown host')}`
  if (!(document.expiresAt instanceof Date) && !(document.lockedAt instanceof Date)) {
    const says = `held by ${who}, and nothing in it says until when: it is never taken over`
    return [...list, problem('lock', says, '`mmk unlock`, once you are sure that nobody runs')]
  }
  const old = document.leaseOwner === undefined ? ', a runner of version 1' : ''
  if (lock.expired) {
    return [...list, note('lock', `left by ${who}${old}: the next run takes it over`)]
  }
  return [...list, note('lock', `held by ${who}${old}`, '`mmk unlock` shows more')]
}

/** @param {ServerFacts} server @param {Readonly<MmkConfig>} config @returns {Finding[]} */
function changelogFindings({ entries, indexes }, { namespace }) {
  const list = []
  const odd = (entries ?? []).filter(isUnreadable)
  if (odd.length > 0) {
    const ids = odd.slice(0, 5).map(({ _id }) => escapeText(String(_id)))
    const says = `${plural(odd.length, 'entry', 'entries')} can't be read: ${ids.join(', ')}${odd.length > 5 ? ' …' : ''}`
    list.push(problem('changelog', says, 'mend or remove them by hand'))
  } else if (entries !== null) {
    list.push(ok('changelog', `${plural(entries.length, 'entry', 'entries')}, all readable`))
  }
  const renamed = (entries ?? []).filter(isRenamed)
  if (renamed.length > 0) {
    const pairs = renamed
      .slice(0, 5)
      .map(({ _id, name }) => `"${escapeText(String(_id))}" says ${escapeText(String(name))}`)
    const says = `${plural(renamed.length, 'entry', 'entries')} whose name or namespace somebody has changed: ${pairs.join(', ')}`
    const todo = 'give them back what their _id says: a file of the old name can not be applied'
    list.push(problem('changelog', says, todo))
  }
  const unique = indexes?.find(({ name, unique }) => name === OLD_INDEX && unique)
  if (unique && namespace !== undefined) {
    const says = `has the unique index ${OLD_INDEX} of version 1: two namespaces can't use the same file name`
    list.push(note('changelog', says, `drop ${OLD_INDEX} when no runner of version 1 is left`))
  }
  return list
}

/**
 * Entries that we create have an `_id` of namespace and name (docs/formats.md).
 * @param {Document} entry
 */
const isRenamed = ({ _id, name, namespace }) =>
  typeof _id === 'string' && _id.includes('/') && _id !== `${namespace ?? ''}/${name}`

/** @param {Document} entry */
function isUnreadable({ name, status, version }) {
  const fine = typeof name === 'string' && STATES.includes(status)
  return !fine || (version !== undefined && Number.isNaN(Number(version)))
}

const AGAIN = "the next `mmk up` runs it again, unless its onInterrupted is 'stop'"

/** @type {readonly { says: string, concerns: (row: StatusRow) => boolean, todo: string }[]} */
const FILE_PROBLEMS = [
  {
    says: 'changed after being applied',
    concerns: ({ checksumOk }) => checksumOk === false,
    todo: '`mmk mark <file> --applied` accepts a file as it is now',
  },
  {
    says: 'applied, but the file is gone',
    concerns: ({ missing }) => missing,
    todo: 'restore it from version control',
  },
  {
    says: 'failed',
    concerns: ({ state }) => state === 'failed',
    todo: `mend it: ${AGAIN}`,
  },
  {
    says: 'interrupted',
    concerns: ({ state }) => state === 'interrupted',
    todo: `\`mmk status\` says when and where; ${AGAIN}`,
  },
]

/** @param {Facts} facts @returns {Finding[]} */
function fileFindings({ rows, directoryFound, config }) {
  if (!directoryFound) {
    const says = `the directory ${escapeText(config.migrationsDir)} does not exist`
    return [
      problem('files', says, '`mmk init` makes it; `mmk config` shows where it is looked for'),
    ]
  }
  // A row without a name stands for an entry that can't be read, and that has been said.
  const named = rows.filter(({ file }) => file !== '')
  const list = FILE_PROBLEMS.flatMap(({ says, concerns, todo }) => {
    const files = named.filter(concerns).map(({ file }) => escapeText(file))
    return files.length > 0 ? [problem('files', `${says}: ${files.join(', ')}`, todo)] : []
  })
  const pending = rows.filter(({ status }) => status === 'pending').length
  return list.length > 0
    ? list
    : [ok('files', `${plural(rows.length, 'migration')}, ${pending} pending`)]
}
