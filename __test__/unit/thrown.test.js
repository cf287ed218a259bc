import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { locationOf } from '../../lib/location.js'
import { createCauses, describeThrown } from '../../lib/thrown.js'

const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('do not look')
    },
    getPrototypeOf: () => {
      throw new Error('nor at this')
    },
    ownKeys: () => {
      throw new Error('nor at these')
    },
  },
)

const circular = Object.assign(Object.create(null), { again: null })
circular.again = circular

/** @type {[string, unknown, string, RegExp][]} what, value, its name, its message */
const cases = [
  ['an error', new RangeError('too much'), 'RangeError', /^too much$/],
  ['a string', 'just text', 'string', /^just text$/],
  ['an empty string', '', 'string', /^$/],
  ['undefined', undefined, 'undefined', /^undefined$/],
  ['null', null, 'null', /^null$/],
  ['a number', 42, 'number', /^42$/],
  ['a symbol', Symbol('s'), 'symbol', /^Symbol\(s\)$/],
  ['a plain object', { code: 7, reason: 'x' }, 'Object', /code: 7, reason: 'x'/],
  ['an object that has itself and no prototype', circular, 'object', /Circular/],
  ['an object with a message', { message: 'said so' }, 'Object', /^said so$/],
  ['errors in one', new AggregateError([new Error('a'), 'b']), 'AggregateError', /^a; 'b'$/],
  ['a proxy that throws', hostile, 'object', /./],
]

describe('a thrown value', () => {
  for (const [what, value, name, message] of cases) {
    it(`is described and kept by identity: ${what}`, () => {
      const causes = createCauses()
      causes.keep('an earlier one')
      const described = describeThrown(value, causes)
      assert.equal(described.code, null)
      assert.equal(described.name, name)
      assert.match(described.message, message)
      assert.ok(Object.is(causes.get(described.causeId), value))
      assert.doesNotThrow(() => JSON.stringify(described))
    })
  }

  it('is described within bounds and in well-formed text', () => {
    const causes = createCauses()
    const long = describeThrown(new Error(`${'x'.repeat(3999)}😀${'y'.repeat(1e6)}`), causes)
    assert.ok(long.message.length <= 4001)
    assert.ok(long.message.isWellFormed())
    const many = describeThrown({ list: Array.from({ length: 1e5 }, () => 'z'.repeat(99)) }, causes)
    assert.ok(many.message.length <= 4001)
  })

  it('is described without the secrets in it', () => {
    const { message } = describeThrown(new Error('mongodb://a:hunter2@h/'), createCauses())
    assert.equal(message, 'mongodb://***:***@h/')
  })

  it('brings along what drivers say of themselves', () => {
    const error = Object.assign(new Error('E11000'), { code: 11000, errorLabels: ['Some'] })
    const { context } = describeThrown(error, createCauses())
    assert.equal(context.code, 11000)
    assert.deepEqual(context.errorLabels, ['Some'])
  })

  it('brings along the first ten errors within it, however odd they are', () => {
    const many = Array.from({ length: 1e4 }, (_, index) => (index === 0 ? hostile : index))
    const { context } = describeThrown(new AggregateError(many, 'all'), createCauses())
    /** @type {any} */
    const errors = context.errors
    assert.equal(errors.length, 10)
    assert.deepEqual(errors[1], { name: 'number', message: '1' })
    const failed = [{ index: 3, code: 11000, errmsg: 'E11000', op: { secret: 1 } }, hostile]
    const bulk = describeThrown({ writeErrors: failed }, createCauses())
    assert.deepEqual(bulk.context.writeErrors, [
      { index: 3, code: 11000, message: 'E11000' },
      { index: null, code: null, message: 'undefined' },
    ])
    assert.equal(describeThrown({ errors: hostile }, createCauses()).context.errors, undefined)
  })

  it('names the first place that is in nobody’s package', () => {
    const stack = [
      'Error: x',
      '    at Collection.insertOne (/app/node_modules/mongodb/lib/collection.js:1:1)',
      '    at node:internal/process/task_queues:95:5',
      '    at async up (file:///app/my%20migrations/1-a.js?v=1:3:9)',
      '    at async main (/app/index.js:1:1)',
    ].join('\n')
    assert.equal(locationOf({ stack }), '/app/my migrations/1-a.js:3:9')
    assert.equal(locationOf({ stack: 'Error: x' }), null)
    assert.equal(locationOf(hostile), null)
  })
})
