import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { explain } from '../../lib/explain.js'

const facts = { name: '1-a.js', transaction: true }
const OPT_OUT = 'put `export const useTransaction = false` into 1-a.js'

/** @param {number | undefined} code @param {string} message @param {string} [codeName] */
const server = (code, message, codeName) => Object.assign(new Error(message), { code, codeName })

describe('an error of a transaction is explained', () => {
  /** @type {[string, string, string][]} the server's words, and how the explanation begins and ends */
  const refused = [
    ["Cannot run 'drop' in a multi-document transaction.", '`drop`', 'that says so'],
    ["Cannot run 'count' in a multi-document transaction. Please see …", '`count`', OPT_OUT],
    ["Cannot run 'listIndexes' in a multi-document transaction.", '`listIndexes`', OPT_OUT],
    ['$merge cannot be used in a transaction', '`$merge`', 'that says so'],
    [
      'Stage not supported inside of a multi-document transaction: $collStats',
      '`$collStats`',
      OPT_OUT,
    ],
    [
      'Cannot create new indexes on existing collection app.full in a multi-document transaction.',
      '`createIndexes` on app.full',
      'that says so',
    ],
    [
      'Cannot create namespace app.new in multi-document transaction.',
      'Creating the collection app.new',
      'that says so',
    ],
    ["Collection 'app.log' is a capped collection.", 'A write to the capped', 'that says so'],
    ["Cannot run command against the 'local' database in a", 'An operation on local', 'says so'],
    ['This command is not supported in transactions', 'This operation', 'that says so'],
  ]
  for (const [message, begin, end] of refused) {
    it(`that refuses an operation with "${message}"`, () => {
      const text = explain(server(263, message), facts) ?? ''
      assert.ok(text.startsWith(`${begin} `) || text.startsWith(begin), text)
      assert.ok(text.endsWith(end) && text.includes(OPT_OUT), text)
    })
  }

  it('wherever it is among the causes', () => {
    const cause = server(263, "Cannot run 'drop' in a multi-document transaction.")
    const thrown = new Error('out', { cause: new Error('middle', { cause }) })
    assert.match(explain(thrown, facts) ?? '', /^`drop`/)
  })

  it('whichever of code and name the server gives', () => {
    for (const error of [
      server(257, 'too large'),
      server(undefined, 'too large', 'TransactionTooLargeForCache'),
      server(10334, 'BSONObj size: 17000000 is invalid'),
    ]) {
      assert.match(explain(error, facts) ?? '', /too large for one transaction.*split/)
    }
  })

  it('that has ended on the server, with the error that ended it if that is known', () => {
    const error = server(251, 'Transaction with { txnNumber: 3 } has been aborted.')
    assert.match(explain(error, { ...facts, attempts: 3 }) ?? '', /in all 3 attempts.*60 seconds/)
    const caught = { command: 'insert', message: 'E11000\u001b[2J' }
    const text = explain(error, { ...facts, caught }) ?? ''
    assert.match(text, /insert had failed with "E11000\\x1b\[2J"/)
  })

  it('that conflicts for ever, that meets a changed catalog, or that runs two operations at once', () => {
    assert.match(explain(server(112, 'w'), { ...facts, attempts: 9 }) ?? '', /in all 9 attempts/)
    assert.match(explain(server(246, 's'), facts) ?? '', /earlier migration/)
    assert.match(explain(server(117, 'c'), facts) ?? '', /no Promise\.all/)
  })

  it('that a standalone can’t have, also when it is the body’s own', () => {
    const message = 'Transaction numbers are only allowed on a replica set member or mongos'
    for (const transaction of [true, false]) {
      assert.match(explain(server(20, message), { ...facts, transaction }) ?? '', /replica set/)
    }
    assert.equal(explain(server(20, 'cannot do that here'), facts), null)
  })
})

describe('nothing is explained', () => {
  it('of an error that says enough, or that is no error of a transaction', () => {
    assert.equal(explain(server(11000, 'E11000 duplicate key'), facts), null)
    assert.equal(explain(server(263, "Cannot run 'drop'"), { ...facts, transaction: false }), null)
  })

  it('of values that are no errors, or don’t want to be looked at', () => {
    const shy = new Proxy(
      {},
      {
        get: () => {
          throw new Error('get')
        },
      },
    )
    for (const thrown of [undefined, null, 'text', Symbol('s'), shy]) {
      assert.equal(explain(thrown, facts), null)
    }
  })
})
