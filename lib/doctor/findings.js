/**
 * From facts to findings: what is well, what is worth knowing, what a person must look at, and what
 * to do. Pure.
 */
import { escapeText, plural } from '../text.js'
import { changelogFindings } from './changelog.js'
import { note, ok, problem } from './finding.js'
import { fenceFindings, lockFindings } from './lock.js'
import { neighbourFindings } from './neighbours.js'
import { missingPermissions } from './permissions.js'

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
/** Clocks of machines that ask a time server differ by less. */
const CLOCK_TOLERANCE_MS = 5000

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
    ...fenceFindings(server, config),
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
