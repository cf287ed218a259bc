/**
 * A server that fails at one of our commands, twice, so that a driver's own second try does not hide
 * it, or for as long as the run lasts. Whatever it is, no migration runs twice, none is recorded that
 * did not run, and the error says what is known.
 */
import { test } from 'node:test'
import { cameTo, faults, faultyRun } from '../helpers/faulty-run.js'
import * as sent from '../helpers/sent.js'

/** @import { Kind, Outcome, Setting, Target } from '../helpers/faulty-run.js' */

/** @type {Outcome} */
const done = { code: null, entries: ['applied', 'applied'], ups: [1, 1] }
/** @param {RegExp} says @returns {Outcome} */
const refused = (says) => ({ code: 'CONNECTION_FAILED', entries: [null, null], ups: [0, 0], says })
/** @type {Outcome} */
const lost = {
  code: 'LOCK_LOST',
  entries: [null, null],
  ups: [0, 0],
  says: /lock was lost/,
  lockStays: true,
}
/** @param {string} file @param {Pick<Outcome, 'entries' | 'ups'>} found @returns {Outcome} */
const unknown = (file, found) => ({
  ...found,
  code: 'OUTCOME_UNKNOWN',
  says: new RegExp(`unknown whether "${file}" was recorded`),
  certainty: 'unknown',
})
/** @param {string} file @param {Pick<Outcome, 'entries' | 'ups'>} found @returns {Outcome} */
const unrecorded = (file, found) => ({
  ...found,
  code: 'CONNECTION_FAILED',
  says: new RegExp(`"${file}" has run and its entry still says running: recording it was refused`),
})

/** Every fault but those named comes to this. @typedef {Partial<Record<Kind, Outcome>>} Exceptions */
/**
 * @typedef {Target & { twice: Outcome, but?: Exceptions, lasting?: Exceptions, writes: boolean,
 *   spared?: Kind[] }} Row
 */

/** @type {Record<string, Row>} */
const rows = {
  'the first read of the changelog': {
    command: 'find',
    matches: sent.readChangelog,
    writes: false,
    twice: refused(/reading the changelog/),
  },
  'the look for other changelogs': {
    command: 'listCollections',
    matches: sent.lookForOthers,
    writes: false,
    twice: refused(/looking for other tools/),
    but: { 'is not permitted': done },
  },
  acquire: {
    command: 'findAndModify',
    matches: sent.acquire,
    writes: true,
    twice: done,
    but: { 'is not permitted': refused(/taking the lock/) },
    lasting: {
      'is answered by no primary': refused(/taking the lock/),
      'is not replicated in time': refused(/taking the lock/),
    },
  },
  'the question who is primary': {
    command: 'hello',
    matches: sent.askForElection,
    writes: false,
    twice: done,
    // Its watch over the server asks the same, and would take the refusals.
    spared: ['is not permitted'],
  },
  'the read of the register': {
    command: 'find',
    matches: sent.readFence,
    writes: false,
    twice: done,
    but: { 'is not permitted': refused(/reading the fence/) },
    lasting: { 'is answered by no primary': lost },
  },
  'the arm’s renewal': {
    command: 'findAndModify',
    matches: sent.armLease,
    writes: true,
    twice: done,
    but: { 'is not permitted': refused(/raising the fence/) },
    lasting: { 'meets a stepping down': lost },
  },
  'the arm’s new token': {
    command: 'findAndModify',
    matches: sent.armFence,
    writes: true,
    twice: done,
    but: { 'is not permitted': refused(/raising the fence/) },
  },
  'the arm’s note on the lock': {
    command: 'update',
    matches: sent.armNote,
    writes: true,
    twice: done,
    but: { 'is not permitted': refused(/raising the fence/) },
  },
  'the arm’s commit': {
    command: 'commitTransaction',
    matches: sent.armCommit,
    writes: true,
    twice: done,
    but: { 'is not permitted': refused(/raising the fence/) },
  },
  'a claim': {
    command: 'findAndModify',
    matches: sent.claim('1.js'),
    writes: true,
    twice: done,
    but: { 'is not permitted': refused(/claiming a migration/) },
    lasting: {
      'is answered by no primary': unknown('1.js', { entries: [null, null], ups: [0, 0] }),
      'is not replicated in time': unknown('1.js', { entries: ['running', null], ups: [0, 0] }),
      'loses its connection': unknown('1.js', { entries: [null, null], ups: [0, 0] }),
    },
  },
  'the last settlement': {
    command: 'findAndModify',
    matches: sent.settle('2.js'),
    writes: true,
    twice: done,
    but: {
      'is not permitted': unrecorded('2.js', { entries: ['applied', 'running'], ups: [1, 1] }),
    },
    lasting: {
      'meets a stepping down': unknown('2.js', { entries: ['applied', 'running'], ups: [1, 1] }),
      'is not replicated in time': unknown('2.js', {
        entries: ['applied', 'applied'],
        ups: [1, 1],
      }),
      'loses its connection': unknown('2.js', { entries: ['applied', 'running'], ups: [1, 1] }),
    },
  },
  'a settlement with the next claim': {
    command: 'update',
    matches: sent.advance('1.js'),
    writes: true,
    twice: done,
    but: { 'is not permitted': unrecorded('1.js', { entries: ['running', null], ups: [1, 0] }) },
    lasting: {
      'meets a stepping down': unknown('1.js', { entries: ['running', null], ups: [1, 0] }),
      'is not replicated in time': unknown('1.js', {
        entries: ['applied', 'running'],
        ups: [1, 0],
      }),
      'loses its connection': unknown('1.js', { entries: ['running', null], ups: [1, 0] }),
    },
  },
  'the look for what it has left running': {
    command: 'aggregate',
    matches: sent.lookForOperations,
    writes: false,
    twice: done,
    lasting: { 'is not permitted': done },
  },
  'the way off the register': {
    command: 'findAndModify',
    matches: sent.pull,
    writes: true,
    twice: done,
    lasting: { 'is answered by no primary': done },
  },
  'the release': {
    command: 'delete',
    matches: sent.release,
    writes: true,
    twice: done,
    but: { 'is not permitted': { ...done, lockStays: true } },
    lasting: { 'is answered by no primary': { ...done, lockStays: true } },
  },
}

const kinds = /** @type {Kind[]} */ (Object.keys(faults))
/** A lease that ends soon after its renewals do. @type {Setting} */
const short = { ttl: 2 }

/** @param {Row} row @returns {Kind[]} what can happen to it; where it changes nothing, once is enough */
function kindsOf({ writes, spared = [], matches }) {
  const sparing = new Set(spared)
  if (!writes) sparing.add('is not replicated in time')
  if (!writes || matches === sent.pull) sparing.add('meets a stepping down')
  return kinds.filter((kind) => !sparing.has(kind))
}

for (const [name, row] of Object.entries(rows)) {
  const { twice, but = {}, lasting = {}, ...target } = row
  for (const kind of kindsOf(row)) {
    test(`${name} ${kind}, twice`, async (t) => {
      const run = await faultyRun(t, target, faults[kind], { times: 2 })
      await cameTo(run, but[kind] ?? twice)
    })
  }
  for (const [kind, outcome] of /** @type {[Kind, Outcome][]} */ (Object.entries(lasting))) {
    test(`${name} ${kind}, again and again`, async (t) => {
      const run = await faultyRun(t, target, faults[kind], 'alwaysOn', short)
      await cameTo(run, outcome)
    })
  }
}
