import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { closing } from '../../lib/closing.js'
import { LockLostError } from '../../lib/errors.js'

/** @import { Event } from '../../lib/contract.d.ts' */

const failing = async () => {
  throw new Error('the socket is gone')
}

describe('closing', () => {
  it('happens after the work, whatever the work came to', async () => {
    /** @type {string[]} */
    const order = []
    const close = async () => void order.push('closed')
    const value = await closing(
      async () => order.push('worked'),
      close,
      () => {},
    )
    assert.equal(value, 1)
    await assert.rejects(
      closing(failing, close, () => {}),
      /socket/,
    )
    assert.deepEqual(order, ['worked', 'closed', 'closed'])
  })

  it('never hides the first error: its own failure is attached', async () => {
    const first = new LockLostError('lost')
    const work = closing(
      () => Promise.reject(first),
      failing,
      () => {},
    )
    await assert.rejects(work, (error) => error === first)
    assert.match(first.suppressed[0].message, /Could not close a connection: the socket is gone/)
  })

  it('that fails after work that went well is only a warning', async () => {
    /** @type {Event[]} */
    const events = []
    assert.equal(
      await closing(
        async () => 7,
        failing,
        (event) => void events.push(event),
      ),
      7,
    )
    assert.deepEqual(
      events.map((event) => event.type === 'warning' && event.code),
      ['DISCONNECT'],
    )
  })
})
