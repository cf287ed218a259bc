import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import picocolors from 'picocolors'
import { EXIT, EXIT_BY_CODE, exitStatus } from '../../lib/cli/exit.js'
import { failureDocument, failureText } from '../../lib/cli/failure.js'
import { statusNotes, statusTable } from '../../lib/cli/render.js'
import {
  ConnectionFailedError,
  InvalidArgumentError,
  LockAlreadyHeldError,
  LockLostError,
  LockReleaseFailedError,
  MigrationFileNotFoundError,
} from '../../lib/errors.js'

/** @import { StatusRow } from '../../index.d.ts' */

const plain = picocolors.createColors(false)
const colored = picocolors.createColors(true)

/** @param {Partial<StatusRow>} [facts] @returns {StatusRow} */
function row(facts = {}) {
  return {
    file: '0001-a.js',
    status: 'pending',
    state: 'pending',
    direction: null,
    batch: null,
    appliedAt: null,
    duration: null,
    checksumOk: null,
    missing: false,
    startedAt: null,
    executedBy: null,
    host: null,
    error: null,
    ...facts,
  }
}

const applied = row({
  status: 'applied',
  state: 'applied',
  batch: 3,
  appliedAt: new Date(2026, 9, 15, 22, 24, 21),
  duration: 12,
  checksumOk: true,
})

/** The cells of the last line of a table. @param {string} table */
function lastCells(table) {
  const lines = table.split('\n').filter((line) => line.startsWith('│'))
  return lines
    .at(-1)
    ?.split('│')
    .slice(1, -1)
    .map((cell) => cell.trim())
}

describe('the table', () => {
  it('has the columns of 1.x', () => {
    const table = statusTable([applied], { colors: plain })
    const heads = table.split('\n')[1].split('│').slice(1, -1)
    assert.deepEqual(
      heads.map((head) => head.trim()),
      ['Migration', 'Status', 'Batch', 'Applied At', 'Duration', 'Checksum'],
    )
    assert.deepEqual(lastCells(table), [
      '0001-a.js',
      'applied',
      '3',
      '2026-10-15 22:24:21',
      '12ms',
      'ok',
    ])
  })

  it('shows dashes for what is not known', () => {
    const cells = lastCells(statusTable([row()], { colors: plain }))
    assert.deepEqual(cells, ['0001-a.js', 'pending', '—', '—', '—', '—'])
  })

  it('shows the state behind the status', () => {
    const state = (/** @type {Partial<StatusRow>} */ facts) =>
      lastCells(statusTable([row(facts)], { colors: plain }))?.[1]
    assert.equal(state({ state: 'interrupted', direction: 'up' }), 'interrupted')
    assert.equal(state({ state: 'interrupted', direction: 'down' }), 'interrupted (down)')
    assert.equal(state({ state: 'applied', missing: true }), 'applied (no file)')
    assert.equal(state({ state: 'reverted' }), 'reverted')
  })

  it('shows an edited file', () => {
    const edited = { ...applied, checksumOk: false }
    assert.equal(lastCells(statusTable([edited], { colors: plain }))?.[5], 'MISMATCH')
  })

  it('states the zone when it is UTC', () => {
    const at = new Date(Date.UTC(2026, 9, 15, 13, 39, 17))
    const table = statusTable([{ ...applied, appliedAt: at }], { colors: plain, utc: true })
    assert.match(table, /Applied At \(UTC\)/)
    assert.equal(lastCells(table)?.[3], '2026-10-15 13:39:17')
  })

  it('is plain text without colours, and the same text with them', () => {
    const rows = [applied, row({ state: 'failed' })]
    const text = statusTable(rows, { colors: plain })
    const painted = statusTable(rows, { colors: colored })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    const sequences = /\u001b\[\d+m/g
    assert.doesNotMatch(text, sequences)
    assert.match(painted, sequences)
    assert.equal(painted.replace(sequences, ''), text)
  })

  it('wraps long names to fit the terminal', () => {
    const long = row({ file: `0001-${'very-long-'.repeat(12)}.js` })
    const table = statusTable([long, applied], { colors: plain, width: 80 })
    for (const line of table.split('\n')) assert.ok(line.length <= 80, line)
  })

  it('wraps names of a coloured table without tearing a colour', () => {
    const long = row({ file: `0001-${'日本-'.repeat(30)}.js` })
    const rows = [long, { ...applied, checksumOk: false }]
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
    const sequences = /\u001b\[\d+m/g
    const text = statusTable(rows, { colors: colored, width: 100 }).replace(sequences, '')
    assert.equal(text, statusTable(rows, { colors: plain, width: 100 }))
    assert.match(text, /│ Applied At {10}│/)
  })

  it('gives way to a few lines for each migration where it can not fit', () => {
    const table = statusTable([applied, row({ file: `0002-${'long-'.repeat(9)}.js` })], {
      colors: plain,
      width: 40,
    })
    assert.deepEqual(table.split('\n'), [
      '0001-a.js',
      '  Status applied · Batch 3',
      '  Applied At 2026-10-15 22:24:21',
      '  Duration 12ms · Checksum ok',
      '0002-long-long-long-long-long-long-long-',
      'long-long-.js',
      '  Status pending',
    ])
  })

  it('escapes names that would break its lines', () => {
    const cells = lastCells(statusTable([row({ file: 'a\n\u001b[2J.js' })], { colors: plain }))
    assert.equal(cells?.[0], 'a\\n\\x1b[2J.js')
  })
})

describe('the notes below the table', () => {
  const at = new Date(2026, 9, 15, 22, 24, 21)
  const who = { startedAt: at, executedBy: 'asha', host: 'deploy-a' }

  it('say who was interrupted, when and where', () => {
    const interrupted = row({ state: 'interrupted', direction: 'up', ...who })
    assert.deepEqual(statusNotes([interrupted]), [
      '⚠ 0001-a.js was interrupted while being applied' +
        ' (started 2026-10-15 22:24:21 by asha on deploy-a)',
    ])
  })

  it('say how a migration failed', () => {
    const failed = row({ state: 'failed', error: { name: 'TypeError', message: 'x\nat y' } })
    assert.deepEqual(statusNotes([failed]), ['⚠ 0001-a.js failed: TypeError: x'])
  })

  it('say that a revert failed and the migration is still applied', () => {
    const noted = { ...applied, error: { name: 'Error', message: 'no' } }
    assert.deepEqual(statusNotes([noted]), ['⚠ 0001-a.js could not be reverted: Error: no'])
  })

  it('point at files that are gone or edited', () => {
    assert.deepEqual(statusNotes([{ ...applied, missing: true, checksumOk: null }]), [
      '⚠ 0001-a.js is applied, but its file is gone',
    ])
    assert.deepEqual(statusNotes([{ ...applied, checksumOk: false }]), [
      '⚠ 0001-a.js was changed after it was applied',
    ])
  })

  it('are silent about what is as it should be', () => {
    assert.deepEqual(statusNotes([applied, row()]), [])
  })
})

describe('a failure in the terminal', () => {
  it('is its code and message, then what to do', () => {
    const error = new InvalidArgumentError('no such flag', { hint: 'see --help' })
    assert.equal(failureText(error), '✖ INVALID_ARGUMENT: no such flag\n  Hint: see --help')
  })

  it('lists what there is instead of what was asked for', () => {
    const missing = (/** @type {string[]} */ available) =>
      failureText(new MigrationFileNotFoundError('no "x.js"', { context: { available } }))
    assert.equal(
      missing(['a.js', 'b\n.js']),
      '✖ MIGRATION_FILE_NOT_FOUND: no "x.js"\n  There is: a.js, b\\n.js',
    )
    assert.match(missing([]), /There is: nothing$/)
  })

  it('has one piece of advice, not two', () => {
    const error = new LockAlreadyHeldError('held\n  Try: run again', { hint: 'run again' })
    assert.equal(failureText(error), '✖ LOCK_ALREADY_HELD: held\n  Try: run again')
  })

  it('shows the holder of a busy lock in UTC when asked', () => {
    const holder = { acquiredAt: new Date(Date.UTC(2026, 0, 2, 3, 4, 5)) }
    const error = new LockAlreadyHeldError('held', { context: { holder } })
    assert.match(failureText(error, { utc: true }), /since 2026-01-02 03:04:05 UTC$/m)
  })

  it('mentions a later failure without letting it hide the first', () => {
    const suppressed = [new LockReleaseFailedError('could not release\nmore')]
    const error = new LockLostError('lost', { suppressed })
    assert.equal(
      failureText(error),
      '✖ LOCK_LOST: lost\n  Also: could not release\n' +
        '  More: node_modules/mongo-migrate-kit/docs/errors.md#lock_lost',
    )
  })

  it('never shows a password nor obeys a control character', () => {
    const text = failureText(new Error('no mongodb://u:hunter2@h/x \u001b[2J'))
    assert.doesNotMatch(text, /hunter2/)
    assert.match(text, /\\x1b\[2J/)
  })

  it('shows the stacks of the whole chain when asked', () => {
    const cause = new TypeError('inner')
    const text = failureText(new ConnectionFailedError('outer', { cause }), { verbose: true })
    assert.match(text, /^ {4}.*outer$/m)
    assert.match(text, /^ {4}Caused by: TypeError: inner$/m)
  })

  it('asks for a report when the error is none of ours', () => {
    assert.match(failureText(new TypeError('x is not a function')), /bug in mongo-migrate-kit/)
  })

  it('can be anything that was thrown', () => {
    assert.match(failureText('just text'), /^✖ just text$/m)
    assert.match(failureText(undefined), /^✖ undefined$/m)
  })
})

describe('a failure as JSON', () => {
  it('has code, message, details and hint', () => {
    const error = new InvalidArgumentError('bad', { context: { flag: '--x' }, hint: 'do y' })
    assert.deepEqual(failureDocument(error), {
      error: { code: 'INVALID_ARGUMENT', message: 'bad', details: { flag: '--x' }, hint: 'do y' },
    })
  })

  it('has the same members for an error that is none of ours', () => {
    assert.deepEqual(failureDocument(new Error('x')), {
      error: { code: null, message: 'x', details: {}, hint: null },
    })
  })
})

describe('the exit status', () => {
  it('follows from the code', () => {
    assert.equal(exitStatus(new InvalidArgumentError('x')), EXIT.usage)
    assert.equal(exitStatus(new LockAlreadyHeldError('x')), EXIT.locked)
    assert.equal(exitStatus(new LockLostError('x')), EXIT.lost)
    assert.equal(exitStatus(new ConnectionFailedError('x')), EXIT.failed)
  })

  it('of every code is the one that the documentation names', async () => {
    const text = await readFile(new URL('../../docs/cli.md', import.meta.url), 'utf8')
    const documented = text.split('\n').flatMap((line) => {
      const [, status, codes = ''] = /^\| (\d+) \|.*\|([^|]*)\|$/.exec(line) ?? []
      return [...codes.matchAll(/`(\w+)`/g)].map(([, code]) => [code, Number(status)])
    })
    assert.deepEqual(Object.fromEntries(documented), { ...EXIT_BY_CODE })
  })

  it('is a failure, not a bug, when the operating system refused', () => {
    const refused = Object.assign(new Error('x'), { code: 'EACCES', syscall: 'open' })
    assert.equal(exitStatus(refused), EXIT.failed)
  })

  it('is 70 for everything that should not happen', () => {
    assert.equal(exitStatus(new TypeError('x')), EXIT.bug)
    assert.equal(exitStatus(null), EXIT.bug)
  })
})
