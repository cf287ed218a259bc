import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import * as errors from '../../lib/errors.js'
import { fromFailure } from '../../lib/failure.js'
import { createCauses } from '../../lib/thrown.js'

/** @import { Failure, Holder } from '../../lib/contract.d.ts' */

const NOW = Date.parse('2026-10-15T13:39:21Z')

/** @type {Holder} */
const holder = {
  owner: '2f16bfc9',
  runId: null,
  namespace: 'orders-worker',
  host: 'worker-7c9f',
  pid: 41,
  user: 'deploy',
  operation: 'up',
  running: null,
  acquiredAt: NOW - 4000,
  lockedAt: NOW - 4000,
  expiresAt: NOW + 56_000,
  now: NOW,
  ttlMs: 60_000,
  beats: 2,
  expired: false,
}

/**
 * @param {Partial<Failure>} parts
 * @returns {Failure}
 */
const failure = (parts) => ({
  code: 'LOCK_LOST',
  message: 'lost',
  hint: null,
  certainty: 'known',
  context: {},
  causeId: null,
  suppressed: [],
  ...parts,
})

describe('our errors', () => {
  it('are named after their code, with its few historic exceptions', () => {
    /** @type {Record<string, string>} */
    const historic = {
      DATABASE_ERROR: 'DatabaseError',
      MIGRATION_INTERRUPTED: 'InterruptedMigrationError',
      MIGRATION_IRREVERSIBLE: 'IrreversibleMigrationError',
    }
    for (const [name, Coded] of Object.entries(errors)) {
      if (!name.endsWith('Error') || name === 'MmkError' || name === 'isMmkError') continue
      const error = new /** @type {any} */ (Coded)('m')
      const words = error.code.toLowerCase().split('_')
      const camel = words.map((/** @type {string} */ word) => word[0].toUpperCase() + word.slice(1))
      assert.equal(name, historic[error.code] ?? `${camel.join('')}Error`)
      assert.equal(error.name, name)
      assert.ok(error instanceof errors.MmkError && error instanceof Error)
    }
  })

  it('carry no secrets in message, hint or context', () => {
    const uri = 'mongodb://ann:hunter2@db.example/'
    const error = new errors.ConnectionFailedError(`no ${uri}`, {
      hint: uri,
      context: { a: [uri] },
    })
    const told = `${error.message} ${error.hint} ${JSON.stringify(error.context)} ${error.stack}`
    assert.ok(!told.includes('hunter2'))
  })

  it('have a cause only when there is one, and keep even undefined as one', () => {
    assert.ok(!('cause' in new errors.LockLostError('m')))
    assert.ok('cause' in new errors.LockLostError('m', { cause: undefined }))
  })
})

describe('a failure of the core', () => {
  it('becomes the class of its code, with hint, certainty and what happened after it', () => {
    const later = failure({ code: 'LOCK_RELEASE_FAILED', message: 'not released' })
    const error = fromFailure(
      failure({ hint: 'look', certainty: 'unknown', context: { a: 1 }, suppressed: [later] }),
      createCauses(),
    )
    assert.ok(error instanceof errors.LockLostError)
    assert.deepEqual([error.hint, error.certainty, error.context], ['look', 'unknown', { a: 1 }])
    assert.ok(error.suppressed[0] instanceof errors.LockReleaseFailedError)
  })

  it('with a code that has no class is still one of ours', () => {
    const error = fromFailure(failure({ code: 'INTERNAL' }), createCauses())
    assert.ok(errors.isMmkError(error))
    assert.equal(error.code, 'INTERNAL')
  })

  it('has the identical thrown value as its cause, whatever it is', () => {
    const hostile = new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error('do not look')
        },
      },
    )
    for (const value of [new Error('x'), 'text', undefined, null, Object.create(null), hostile]) {
      const causes = createCauses()
      const error = fromFailure(failure({ causeId: causes.keep(value) }), causes)
      assert.ok('cause' in error && Object.is(error.cause, value))
    }
  })

  it('that only carries an error of ours gives back that very error', () => {
    const causes = createCauses()
    const ours = new errors.MigrationInvalidExportError('no up')
    const failed = failure({
      code: ours.code,
      message: ours.message,
      causeId: causes.keep(ours),
      suppressed: [failure({})],
      context: { done: ['1-a.js'], notStarted: [], metrics: { renewals: 2 } },
    })
    assert.equal(fromFailure(failed, causes), ours)
    assert.equal(ours.suppressed.length, 1)
    assert.deepEqual(ours.context, { done: ['1-a.js'], notStarted: [], metrics: { renewals: 2 } })
  })

  it('about a held lock says who holds it, in the block that users log', () => {
    const error = fromFailure(
      failure({ code: 'LOCK_ALREADY_HELD', context: { holder } }),
      createCauses(),
    )
    const lines = error.message.split('\n')
    assert.equal(lines[0], 'The migration lock is held by namespace "orders-worker"')
    assert.match(
      lines[1],
      /^ {2}Holder: host worker-7c9f, pid 41, user deploy, since .* \(4s ago\)$/,
    )
    assert.match(lines.at(-1) ?? '', /^ {2}Try: run again when it finishes/)
    /** @type {any} */
    const shown = error.context.holder
    assert.deepEqual(shown.lockedAt, new Date(NOW - 4000))
    assert.deepEqual([shown.pid, shown.host, shown.executedBy], [41, 'worker-7c9f', 'deploy'])
  })

  it('of a body says why, where, what remains and what did not start', () => {
    const context = {
      name: '2-b.js',
      direction: 'up',
      cause: 'seven is too many',
      location: '/app/migrations/2-b.js:3:9',
      transaction: false,
      notStarted: ['3-c.js'],
    }
    const done = { durationMs: 1, batch: 1, reason: null, transaction: false, attempts: 1 }
    const { message } = fromFailure(
      failure({ code: 'MIGRATION_EXECUTION_FAILED', context }),
      createCauses(),
      [
        { file: '0-z.js', status: 'skipped', ...done },
        { file: '1-a.js', status: 'applied', ...done },
      ],
    )
    for (const fact of [/2-b\.js/, /seven is too many/, /2-b\.js:3:9/, /1-a\.js/, /3-c\.js/]) {
      assert.match(message, fact)
    }
    assert.doesNotMatch(message, /0-z\.js/)
  })
})

describe('the types', () => {
  it('name the same exports for CommonJS as for ES modules', async () => {
    const [esm, cjs] = await Promise.all(
      ['index.d.ts', 'index.d.cts'].map((file) =>
        readFile(new URL(`../../${file}`, import.meta.url), 'utf8'),
      ),
    )
    const names = (/** @type {string} */ text, /** @type {RegExp} */ pattern) =>
      [...new Set([...text.matchAll(pattern)].map((match) => match[1]))].sort()
    assert.deepEqual(
      names(cjs, /^export declare const (\w+)/gm),
      names(esm, /^export (?:class|function) (\w+)/gm),
    )
    assert.deepEqual(
      names(cjs, /^export type (\w+)/gm),
      names(esm, /^export (?:class|interface|type) (\w+)/gm),
    )
  })

  it('name every code that has a class', async () => {
    const types = await readFile(new URL('../../index.d.ts', import.meta.url), 'utf8')
    const source = await readFile(new URL('../../lib/errors.js', import.meta.url), 'utf8')
    for (const [, code] of source.matchAll(/'([A-Z]+(?:_[A-Z]+)+)',?\s*\)/g)) {
      assert.ok(types.includes(`| '${code}'`), code)
    }
  })
})

describe('a file that is not there', () => {
  for (const [typed, meant] of /** @type {const} */ ([
    ['0001-add-user.js', '0001-add-users.js'],
    ['add-users', '0001-add-users.js'],
    ['0002', '0002-drop-carts.js'],
  ])) {
    it(`has ${meant} suggested for ${typed}`, () => {
      const available = ['0001-add-users.js', '0002-drop-carts.js']
      const parts = { code: 'MIGRATION_FILE_NOT_FOUND', context: { filename: typed, available } }
      assert.match(fromFailure(failure(parts), createCauses()).hint ?? '', new RegExp(meant))
    })
  }

  it('has the usual hint when nothing is alike', () => {
    const context = { filename: 'x', available: ['0001-add-users.js'] }
    const parts = { code: 'MIGRATION_FILE_NOT_FOUND', context, hint: 'look' }
    assert.equal(fromFailure(failure(parts), createCauses()).hint, 'look')
  })
})
