import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import { countOperations, watchTransaction } from '../../lib/monitor.js'

const OURS = { id: { buffer: Buffer.from('ours') } }
const inside = { lsid: { id: { buffer: Buffer.from('ours') } }, autocommit: false }

/** A client that says what we have it say, and what its watch has told. */
function watched() {
  /** @type {any} */
  const client = new EventEmitter()
  /** @type {string[]} */
  const told = []
  const watch = watchTransaction(client, /** @type {any} */ ({ id: OURS }), (write) => {
    told.push(`${write.command} ${write.collection}`)
  })
  let requestId = 0
  /** @param {string} commandName @param {object} command @param {object} [end] */
  const send = (commandName, command, end = { reply: { ok: 1 } }) => {
    requestId += 1
    client.emit('commandStarted', { commandName, command, databaseName: 'app', requestId })
    const kind = 'failure' in end ? 'commandFailed' : 'commandSucceeded'
    client.emit(kind, { commandName, requestId, ...end })
  }
  return { client, told, watch, send }
}

describe('the watch on a transaction', () => {
  it('tells every kind of write that is outside, with its target', () => {
    const { told, send } = watched()
    send('insert', { insert: 'a' })
    send('findAndModify', { findAndModify: 'b' })
    send('createIndexes', { createIndexes: 'c' })
    send('aggregate', { aggregate: 'd', pipeline: [{ $match: {} }, { $out: 'e' }] })
    send('aggregate', { aggregate: 'd', pipeline: [{ $out: { db: 'x', coll: 'f' } }] })
    send('aggregate', { aggregate: 'd', pipeline: [{ $merge: { into: 'g' } }] })
    send('aggregate', { aggregate: 'd', pipeline: [{ $merge: 'h' }] })
    send('mapReduce', { mapReduce: 'i', out: 'j' })
    send('bulkWrite', { bulkWrite: 1, nsInfo: [{ ns: 'app.k' }] })
    send('dropDatabase', { dropDatabase: 1 })
    assert.deepEqual(told, [
      'insert a',
      'findAndModify b',
      'createIndexes c',
      ...['aggregate e', 'aggregate f', 'aggregate g', 'aggregate h'],
      ...['mapReduce i', 'bulkWrite app.k', 'dropDatabase app'],
    ])
  })

  it('tells no read, and nothing that is inside', () => {
    const { told, send } = watched()
    send('find', { find: 'a' })
    send('aggregate', { aggregate: 'a', pipeline: [] })
    send('aggregate', { aggregate: 1, pipeline: [{ $currentOp: {} }] })
    send('mapReduce', { mapReduce: 'a', out: { inline: 1 } })
    send('insert', { insert: 'a', ...inside })
    assert.deepEqual(told, [])
  })

  it('takes another session, or ours without the transaction, for outside', () => {
    const { told, send } = watched()
    send('insert', { insert: 'a', autocommit: false, lsid: { id: { buffer: Buffer.from('x') } } })
    send('insert', { insert: 'b', lsid: inside.lsid })
    assert.deepEqual(told, ['insert a', 'insert b'])
  })

  it('keeps the first error inside that a new attempt would meet again', () => {
    const { watch, send } = watched()
    const passing = { message: 'conflict', errorLabels: ['TransientTransactionError'] }
    send('insert', { insert: 'a', ...inside }, { failure: passing })
    send('commitTransaction', { ...inside }, { failure: { message: 'no' } })
    send('insert', { insert: 'a' }, { failure: { message: 'outside' } })
    assert.equal(watch.failure(), null)
    send(
      'insert',
      { insert: 'a', ...inside },
      { reply: { ok: 1, writeErrors: [{ errmsg: 'E1' }] } },
    )
    send('drop', { drop: 'a', ...inside }, { failure: { message: 'later' } })
    assert.deepEqual(watch.failure(), { command: 'insert', message: 'E1' })
  })

  it('finds the error in a bulk’s reply', () => {
    const { watch, send } = watched()
    const firstBatch = [{ ok: 1 }, { ok: 0, errmsg: 'E2' }]
    const reply = { ok: 1, nErrors: 1, cursor: { firstBatch } }
    send('bulkWrite', { bulkWrite: 1, ...inside }, { reply })
    assert.deepEqual(watch.failure(), { command: 'bulkWrite', message: 'E2' })
  })

  it('hears nothing any more when it has stopped', () => {
    const { client, told, watch, send } = watched()
    watch.stop()
    send('insert', { insert: 'a' })
    assert.deepEqual(told, [])
    assert.deepEqual(client.eventNames(), [])
  })
})

describe('the count of operations', () => {
  it('goes from asking for a connection to giving it back, or to not getting one', () => {
    /** @type {any} */
    const client = new EventEmitter()
    const open = countOperations(client)
    client.emit('connectionCheckOutStarted')
    client.emit('connectionCheckOutStarted')
    assert.equal(open(), 2)
    client.emit('connectionCheckedIn')
    client.emit('connectionCheckOutFailed')
    assert.equal(open(), 0)
  })
})
