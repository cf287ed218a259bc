/**
 * What a run sends, by name: matchers for the wire proxy. The core's own connections are told from the
 * bodies' by their `appName`.
 */

/** @import { Matcher } from './wire-proxy.js' */

const locks = '_mmk_locks'
const changelog = '_mmk_migrations'

/** @param {string} appName */
const isLockConnection = (appName) => appName.startsWith('mmk-hb/')
/** @param {string} appName */
const isBodies = (appName) => appName.startsWith('mmk/')
/** @param {import('mongodb').Document} command */
const inTransaction = (command) => command.autocommit === false

/** @type {Matcher} */
export const readChangelog = (command) => command.find === changelog

/** The look for other tools' changelogs. @type {Matcher} */
export const lookForOthers = (command) => 'listCollections' in command

/** The question who is primary, before the lock is touched. @type {Matcher} */
export const askForElection = (command, appName) =>
  command.hello === 1 &&
  command.client === undefined &&
  isLockConnection(appName) &&
  '$db' in command

/** @type {Matcher} */
export const acquire = (command) =>
  command.findAndModify === locks && command.query._id === 'mmk_lock' && command.upsert === true

/** @type {Matcher} */
export const readFence = (command) => command.find === locks && command.filter._id === 'mmk_fence'

/** The arm's first statement. @type {Matcher} */
export const armLease = (command) =>
  command.findAndModify === locks && command.query._id === 'mmk_lock' && inTransaction(command)

/** The arm's second. @type {Matcher} */
export const armFence = (command) =>
  command.findAndModify === locks && command.query._id === 'mmk_fence' && command.upsert === true

/** The arm's third. @type {Matcher} */
export const armNote = (command) =>
  command.update === locks && command.updates[0].q._id === 'mmk_lock'

/** @type {Matcher} */
export const armCommit = (command, appName) =>
  'commitTransaction' in command && isLockConnection(appName)

/** @type {Matcher} */
export const renew = (command) =>
  command.findAndModify === locks &&
  command.query._id === 'mmk_lock' &&
  command.upsert !== true &&
  !inTransaction(command)

/** @type {Matcher} */
export const watch = (command) =>
  command.aggregate === locks && '$changeStream' in command.pipeline[0]

/** @param {string} file @returns {Matcher} */
export const claim = (file) => (command) =>
  command.findAndModify === changelog &&
  command.query._id === `/${file}` &&
  command.query.runId === undefined

/** A record by itself, as of the last migration. @param {string} file @returns {Matcher} */
export const settle = (file) => (command) =>
  command.findAndModify === changelog &&
  command.query._id === `/${file}` &&
  command.query.runId !== undefined

/** A record together with the claim of the next. @param {string} file @returns {Matcher} */
export const advance = (file) => (command) =>
  command.update === changelog &&
  command.updates.length === 2 &&
  command.updates[0].q._id === `/${file}`

/** Marks and adoptions find their entry as a claim does. */
export const mark = claim
export const adopt = claim

/** A body's own write. @type {Matcher} */
export const write = (command, appName) => command.update === 'runs' && isBodies(appName)

/** The entry, in the body's transaction. @type {Matcher} */
export const settleInTransaction = (command) =>
  command.update === changelog && inTransaction(command)

/** The fence, in the body's transaction. @type {Matcher} */
export const touchFence = (command) =>
  command.update === locks && command.updates[0].q._id === 'mmk_fence'

/** @type {Matcher} */
export const commit = (command, appName) => 'commitTransaction' in command && isBodies(appName)

/** The look for what a run has left running. @type {Matcher} */
export const lookForOperations = (command) =>
  command.aggregate === 1 && '$currentOp' in command.pipeline[0]

/** @type {Matcher} */
export const endSession = (command) => 'killSessions' in command

/** @type {Matcher} */
export const endOperation = (command) => 'killOp' in command

/** The run off the register. @type {Matcher} */
export const pull = (command) =>
  command.findAndModify === locks && command.query._id === 'mmk_fence' && command.upsert !== true

/** @type {Matcher} */
export const release = (command) => command.delete === locks
