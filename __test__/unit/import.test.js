import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import picocolors from 'picocolors'
import { importTable } from '../../lib/cli/import-table.js'
import { importLines, importRequest } from '../../lib/import.js'

/** @import { ImportReport } from '../../lib/contract.d.ts' */

/** @param {Partial<ImportReport>} [facts] @returns {ImportReport} */
function report(facts = {}) {
  return {
    source: 'changelog',
    target: '_mmk_migrations',
    tool: 'migrate-mongo',
    imported: 0,
    skipped: 0,
    alreadyThere: 0,
    dryRun: false,
    rows: [],
    rejected: [],
    changed: [],
    ...facts,
  }
}

/** @param {Partial<ImportReport['rejected'][0]>} facts @returns {ImportReport['rejected'][0]} */
const rejection = (facts) => ({ id: '1', why: 'malformed', reason: 'odd', file: null, ...facts })

/** @param {Partial<ImportReport>} facts */
const texts = (facts) => importLines(report(facts)).map(({ level, text }) => `${level}: ${text}`)

const CONFIG = { lockCollection: '_mmk_locks' }

describe('a request for an import', () => {
  it('says everything that the core asks', () => {
    assert.deepEqual(importRequest({}, CONFIG), {
      from: null,
      to: null,
      tool: null,
      dryRun: false,
      trustHash: false,
      skipMissing: false,
      force: false,
      noLock: false,
    })
  })

  it('takes names only', () => {
    for (const option of ['from', 'to', 'tool']) {
      for (const value of ['', 7, {}]) {
        assert.throws(() => importRequest(/** @type {any} */ ({ [option]: value }), CONFIG), {
          code: 'INVALID_ARGUMENT',
        })
      }
    }
  })

  it('neither reads nor writes the collection of the lock', () => {
    for (const option of ['from', 'to']) {
      assert.throws(() => importRequest({ [option]: 'locks' }, { lockCollection: 'locks' }), {
        code: 'INVALID_ARGUMENT',
        message: new RegExp(`\`${option}\` must not be "locks": that is the lockCollection`),
      })
    }
  })
})

describe('the lines of an import', () => {
  it('end with what was done', () => {
    assert.deepEqual(texts({ imported: 2, alreadyThere: 1 }), [
      'success: ✔ Imported 2 record(s) from "changelog" → "_mmk_migrations"',
      'dim:   1 record(s) were there already',
    ])
    assert.deepEqual(texts({ tool: null }), ['info: Nothing to import from "changelog"'])
  })

  it('name what was left out before it, and what will run after it', () => {
    const [skipped, leftOut, outcome, pending] = texts({
      rejected: [
        rejection({ why: 'notApplied', reason: '2.js failed there' }),
        rejection({ id: 'ab', reason: '1.js without a usable appliedAt (null)', file: '1.js' }),
      ],
    })
    assert.equal(
      skipped,
      'warn: ⚠ Skipping source doc 1.js without a usable appliedAt (null)   [_id ab]',
    )
    assert.equal(leftOut, 'dim: ⏭ Left out  2.js failed there')
    assert.match(outcome ?? '', /^success/)
    assert.match(pending ?? '', /^warn: ⚠ 1\.js is pending.*mmk mark 1\.js --applied/)
  })

  it('do not list a whole changelog', () => {
    const rejected = Array.from({ length: 1000 }, () => rejection({}))
    const lines = texts({ rejected })
    assert.ok(lines.length < 30)
    assert.ok(lines.some((line) => line.includes('980 more')))
  })

  it('can not be forged by a name in a foreign document', () => {
    const name = 'a\n✔ Imported 9\u001b[2J.js'
    const lines = texts({
      source: name,
      rejected: [rejection({ id: name, reason: name, file: name })],
      changed: [name],
    })
    for (const line of lines) assert.doesNotMatch(line, /\p{Cc}/u)
  })
})

describe('the table of an import', () => {
  it('shows a time that nobody knows as none', () => {
    const table = importTable(
      [
        {
          file: '1-a.js',
          batch: 1,
          appliedAt: new Date('2024-01-01T12:00:00Z'),
          checksum: 'ab',
          checksumSource: 'reused',
        },
        { file: '2-b.js', batch: 2, appliedAt: null, checksum: '', checksumSource: 'missing' },
      ],
      { colors: picocolors.createColors(false), utc: true },
    )
    assert.match(table, /1-a\.js .*1 .*2024-01-01 12:00:00 .*reused/)
    assert.match(table, /2-b\.js .*2 .*— .*missing/)
  })
})
