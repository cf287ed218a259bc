import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { wantsColor } from '../../lib/colors.js'
import { createLogger } from '../../lib/logger.js'
import { createReporter, eventLines, nothingText, rehearsalText } from '../../lib/reporter.js'

/** @import { Event } from '../../lib/contract.d.ts' */

/** @type {import('../../lib/contract.d.ts').Holder} */
const holder = {
  owner: 'token-1',
  runId: null,
  namespace: null,
  host: 'deploy-a',
  pid: 7,
  user: 'asha',
  operation: 'up',
  running: '0001-a.js',
  acquiredAt: 0,
  lockedAt: 0,
  expiresAt: null,
  now: 0,
  ttlMs: 60_000,
  beats: 2,
  expired: false,
}

/** @type {Extract<Event, { type: 'migrationStarted' }>} */
const started = {
  type: 'migrationStarted',
  name: '0001-a.js',
  direction: 'up',
  position: 1,
  total: 1,
  rerunOf: null,
  forced: false,
}

/** @type {Extract<Event, { type: 'migrationFinished' }>} */
const finished = {
  type: 'migrationFinished',
  name: '0001-a.js',
  status: 'applied',
  durationMs: 12,
  batch: 1,
  transaction: false,
  attempts: 1,
}

/** Records what a reporter says and does, in order. */
function recorder() {
  /** @type {string[]} */
  const seen = []
  /** @param {string} level */
  const say = (level) => (/** @type {string} */ text) => void seen.push(`${level}: ${text}`)
  return {
    seen,
    logger: {
      info: say('info'),
      success: say('success'),
      warn: say('warn'),
      error: say('error'),
      dim: say('dim'),
    },
    progress: {
      onStart: (/** @type {string} */ name, /** @type {string} */ direction) =>
        void seen.push(`start ${name} ${direction}`),
      onStop: () => void seen.push('stop'),
    },
  }
}

/** @param {Event} event */
const texts = (event) => eventLines(event).map((line) => line.text)

describe('log lines', () => {
  it('keep the wording of 1.x', () => {
    assert.deepEqual(eventLines(finished), [
      { level: 'success', text: '✔ Applied  0001-a.js   [12ms]' },
    ])
    assert.deepEqual(texts({ ...finished, status: 'reverted' }), ['↩ Reverted 0001-a.js   [12ms]'])
    assert.deepEqual(texts({ ...finished, transaction: true }), [
      '✔ Applied  0001-a.js   [12ms, transaction]',
    ])
    assert.deepEqual(texts({ ...finished, transaction: true, attempts: 3 }), [
      '✔ Applied  0001-a.js   [12ms, transaction, attempt 3]',
    ])
    assert.deepEqual(
      texts({ type: 'transactionRetried', name: 'a.js', attempt: 2, reason: 'gone\n' }),
      ['⚠ Retrying  a.js — its transaction was given up (gone\\n); attempt 2 begins'],
    )
    assert.deepEqual(
      eventLines({ type: 'migrationSkipped', name: 'a.js', reason: 'Already applied' }),
      [{ level: 'dim', text: '⏭ Skipped  a.js' }],
    )
    assert.deepEqual(
      eventLines({ type: 'migrationFailed', name: 'a.js', direction: 'up', error: null }),
      [{ level: 'error', text: '✖ Error    a.js' }],
    )
    assert.equal(nothingText('up'), 'Nothing to migrate')
    assert.equal(nothingText('down'), 'Nothing to rollback')
    assert.equal(nothingText('redo'), 'Nothing to redo')
    assert.equal(rehearsalText('up', 3), '◎ Dry-run  Would apply: 3')
    assert.equal(rehearsalText('down', 0), '◎ Dry-run  Would revert: 0')
    assert.deepEqual(texts({ ...started, forced: true }), [
      '⚠ Forcing   re-run of already-applied 0001-a.js',
    ])
  })

  it('say what was marked by hand, and why', () => {
    const marked = /** @type {const} */ ({ type: 'migrationMarked', name: 'a.js', reason: null })
    assert.deepEqual(eventLines({ ...marked, status: 'applied' }), [
      { level: 'success', text: '✔ Marked   a.js as applied' },
    ])
    assert.deepEqual(eventLines({ ...marked, status: 'reverted', reason: 'undone\nby me' }), [
      { level: 'success', text: '✔ Marked   a.js as pending   (undone\\nby me)' },
    ])
  })

  it('warn about a lost lock in the words that users know', () => {
    assert.deepEqual(eventLines({ type: 'leaseLost', cause: 'superseded' }), [
      {
        level: 'warn',
        text: '⚠ Lost the migration lock mid-run (renewal failed) — another run may have started',
      },
    ])
  })

  it('say of a run that goes on without its lock what it said when it lost it', () => {
    const event = /** @type {const} */ ({
      type: 'warning',
      code: 'LOCK_LOST',
      message: 'x',
      context: {},
    })
    assert.deepEqual(eventLines(event), eventLines({ type: 'leaseLost', cause: 'deadline' }))
  })

  it('warn about a run without a lock in the words that users know', () => {
    const event = /** @type {const} */ ({
      type: 'warning',
      code: 'NO_LOCK',
      message: 'x',
      context: {},
    })
    assert.deepEqual(texts(event), [
      '⚠ Running without a lock (--no-lock) — concurrent runs are unsafe',
    ])
  })

  it('say loudly that a migration runs again which did not finish', () => {
    assert.deepEqual(eventLines({ ...started, rerunOf: 'interrupted' }), [
      {
        level: 'warn',
        text: '⚠ Running again  0001-a.js — it was interrupted before it finished',
      },
    ])
    assert.deepEqual(texts({ ...started, rerunOf: 'failed' }), [
      '⚠ Running again  0001-a.js — it failed the last time',
    ])
  })

  it('say who holds the lock that a run waits for', () => {
    const [{ level, text }] = eventLines({ type: 'lockWaiting', holder, retryInMs: 100 })
    assert.equal(level, 'warn')
    assert.match(text, /^Waiting for the migration lock of the default namespace .* 0001-a\.js$/)
  })

  it('say how an entry that somebody has moved differs from what was read', () => {
    const expected = { status: 'running', version: 2, runId: 'ours' }
    /** @type {[Extract<Event, { type: 'claimConflict' }>['found'], string][]} */
    const cases = [
      [null, 'found gone'],
      [{ ...expected, status: 'applied' }, 'found "applied"'],
      [{ ...expected, runId: 'theirs' }, 'found "running" by another run'],
      [{ ...expected, version: 3 }, 'found "running" in another version'],
    ]
    for (const [found, says] of cases) {
      const [text = ''] = texts({ type: 'claimConflict', name: 'a.js', expected, found })
      assert.ok(text.endsWith(`expected "running", ${says}`), text)
    }
  })

  it('say nothing of what goes as it should', () => {
    assert.deepEqual(texts(started), [])
    assert.deepEqual(texts({ type: 'leaseRenewed', beats: 3 }), [])
    assert.deepEqual(texts({ type: 'planned', direction: 'up', names: ['a.js'] }), [])
    assert.deepEqual(
      texts({ type: 'lockAcquired', owner: 'o', runId: 'r', tookOverFrom: null }),
      [],
    )
  })

  it('escape names that would write to the terminal', () => {
    assert.deepEqual(texts({ ...finished, name: 'a\u001b[2J\n.js' }), [
      '✔ Applied  a\\x1b[2J\\n.js   [12ms]',
    ])
  })
})

describe('a reporter', () => {
  it('stops the indicator before it says that a migration is done', () => {
    const { seen, logger, progress } = recorder()
    const report = createReporter({ logger, progress })
    report(started)
    report(finished)
    assert.deepEqual(seen, ['start 0001-a.js up', 'stop', 'success: ✔ Applied  0001-a.js   [12ms]'])
  })

  it('is silent without a logger, and still drives the indicator', () => {
    const { seen, progress } = recorder()
    const report = createReporter({ logger: null, progress })
    report(started)
    report(finished)
    assert.deepEqual(seen, ['start 0001-a.js up', 'stop'])
  })
})

describe('the default logger', () => {
  /** @param {boolean} isTTY */
  function sink(isTTY) {
    const written = /** @type {string[]} */ ([])
    return { isTTY, written, write: (/** @type {string} */ text) => void written.push(text) }
  }

  it('sends results to stdout, warnings and errors to stderr', () => {
    const stdout = sink(false)
    const stderr = sink(false)
    const logger = createLogger({ stdout, stderr, env: {} })
    for (const level of /** @type {const} */ (['info', 'success', 'dim', 'warn', 'error'])) {
      logger[level](level)
    }
    assert.deepEqual(stdout.written, ['info\n', 'success\n', 'dim\n'])
    assert.deepEqual(stderr.written, ['warn\n', 'error\n'])
  })

  it('colours what a terminal shows, and only that', () => {
    const stdout = sink(true)
    const stderr = sink(false)
    const logger = createLogger({ stdout, stderr, env: {} })
    logger.success('done')
    logger.error('no')
    assert.deepEqual(stdout.written, ['\u001b[32mdone\u001b[39m\n'])
    assert.deepEqual(stderr.written, ['no\n'])
  })

  it('obeys NO_COLOR and FORCE_COLOR', () => {
    assert.equal(wantsColor(sink(true), { NO_COLOR: '1' }), false)
    assert.equal(wantsColor(sink(true), { FORCE_COLOR: '0' }), false)
    assert.equal(wantsColor(sink(false), { FORCE_COLOR: '1' }), true)
    assert.equal(wantsColor(sink(true), { TERM: 'dumb' }), false)
  })
})
