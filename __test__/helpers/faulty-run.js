/**
 * A run one of whose commands fails: the server's own fault, put in front of exactly that command and
 * of those of its name that the same connection sends later.
 */
import assert from 'node:assert/strict'
import { runMigrations } from 'mongo-migrate-kit'
import { exitStatus } from '../../lib/cli/exit.js'
import { api } from './api.js'
import { counting, runsOf } from './bodies.js'
import { failCommand } from './fail-point.js'
import { startWireProxy } from './wire-proxy.js'

/** @import { Api } from './api.js' */
/** @import { Matcher } from './wire-proxy.js' */

/** What can happen to a command. */
export const faults = /** @type {const} */ ({
  'is answered by no primary': { errorCode: 10107 },
  'meets a stepping down': { errorCode: 189 },
  'is not replicated in time': { writeConcernError: { code: 64, errmsg: 'waiting timed out' } },
  'loses its connection': { closeConnection: true },
  'is not permitted': { errorCode: 13 },
})

/**
 * @typedef {keyof typeof faults} Kind
 * @typedef {{ command: string, matches: Matcher }} Target `command` is the server's name for it
 *
 * @typedef {object} Outcome
 * @property {string | null} code of the error; `null`: there is none
 * @property {readonly (string | null)[]} entries what the changelog says of 1.js and 2.js
 * @property {readonly number[]} ups how often they have run
 * @property {RegExp} [says] what the error must say
 * @property {'known' | 'unknown'} [certainty]
 * @property {boolean} [lockStays]
 *
 * @typedef {object} Setting
 * @property {number} [ttl] seconds
 * @property {string} [more] statements at the end of the first body
 * @property {(api: Api) => Promise<unknown>} [arrange]
 * @property {(api: Api) => Promise<unknown>} [meanwhile] when the fault is in place
 */

/** Long enough for a driver that looks for the server again, which takes half a second. */
const patientTtl = 5
/** However often something is tried, it comes to an end. */
const deadlineMs = 40_000

/**
 * Runs two migrations, with the fault in front of the target.
 *
 * @param {import('node:test').TestContext} t
 * @param {Target} target
 * @param {import('mongodb').Document} fault
 * @param {'alwaysOn' | { times: number }} mode
 * @param {Setting} [setting]
 */
export async function faultyRun(t, { command, matches }, fault, mode, setting = {}) {
  const { ttl = patientTtl, more = '', arrange, meanwhile } = setting
  const app = await api(t, { '1.js': counting('1', more), '2.js': counting('2') })
  const { database, config, onEvent } = app
  await arrange?.(app)
  const proxy = await startWireProxy(t, database.uri)
  const coming = proxy.hold('before', matches)
  const waiting = /** @type {const} */ ({ onLockHeld: 'wait', lockWaitTimeoutMs: deadlineMs })
  const options = { ...config, ...waiting, lockTTLSeconds: ttl }
  const run = runMigrations({ ...options, uri: proxy.uri, onEvent }).then(
    () => null,
    (/** @type {any} */ error) => error,
  )
  const early = run.then((error) => assert.fail(`it ended before: ${error}`))
  early.catch(() => {})
  const { appName, release } = await Promise.race([coming, early])
  const data = { failCommands: [command], appName, ...fault }
  const end = await failCommand(t, database.uri, data, mode)
  try {
    release()
    await meanwhile?.(app)
    return { ...app, options, error: await within(run) }
  } finally {
    await end()
  }
}

/**
 * @template T
 * @param {Promise<T>} run
 * @returns {Promise<T>}
 */
async function within(run) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end in ${deadlineMs} ms`)), deadlineMs)
  })
  try {
    return await Promise.race([run, /** @type {Promise<never>} */ (late)])
  } finally {
    clearTimeout(timer)
  }
}

/** @param {import('./database.js').Database} database */
async function found(database) {
  const entries = await Promise.all(['1.js', '2.js'].map((name) => database.entry(name)))
  const runs = await Promise.all(['1', '2'].map((name) => runsOf(database, name)))
  return { entries: entries.map((entry) => entry?.status ?? null), ups: runs.map(({ ups }) => ups) }
}

/**
 * The run came to what it should, and the next one applies what does not count as applied, once.
 *
 * @param {Awaited<ReturnType<typeof faultyRun>>} run
 * @param {Outcome} outcome
 */
export async function cameTo({ database, options, error }, outcome) {
  const { code, entries, ups, says = /^/, certainty = 'known', lockStays = false } = outcome
  assert.equal(error?.code ?? null, code, String(error))
  if (error) {
    assert.match(error.message, says)
    assert.equal(error.certainty, certainty)
    assert.equal(exitStatus(error), documentedStatus[error.code])
  }
  assert.deepEqual(await found(database), { entries, ups })
  if (!lockStays) assert.equal(await database.lock(), null)

  await runMigrations(options)
  assert.deepEqual(await found(database), {
    entries: ['applied', 'applied'],
    ups: ups.map((count, index) => count + (entries[index] === 'applied' ? 0 : 1)),
  })
}

/** As docs/cli.md has it. @type {Record<string, number>} */
const documentedStatus = {
  CONNECTION_FAILED: 1,
  DATABASE_ERROR: 1,
  LOCK_LOST: 5,
  OUTCOME_UNKNOWN: 5,
}
