import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  downRequest,
  dryRunRequest,
  markRequest,
  redoRequest,
  upRequest,
} from '../../lib/requests.js'

/** @type {any} */
const CONFIG = { onLockHeld: 'throw', lockWaitTimeoutMs: undefined }

describe('a request', () => {
  it('for up says everything that the core asks', () => {
    assert.deepEqual(upRequest(undefined, {}, CONFIG), {
      command: 'up',
      file: null,
      to: null,
      step: false,
      force: false,
      forceFresh: false,
      noLock: false,
      onLockHeld: 'throw',
      lockWaitTimeoutMs: null,
      lockPollIntervalMs: null,
    })
  })

  it('takes what its options leave open from the configuration', () => {
    const config = { ...CONFIG, onLockHeld: 'wait', lockWaitTimeoutMs: 7 }
    const { onLockHeld, lockWaitTimeoutMs } = upRequest(undefined, {}, config)
    assert.deepEqual([onLockHeld, lockWaitTimeoutMs], ['wait', 7])
    const own = upRequest(undefined, { onLockHeld: 'throw', lockWaitTimeoutMs: 0 }, config)
    assert.deepEqual([own.onLockHeld, own.lockWaitTimeoutMs], ['throw', 0])
  })

  it('for down takes a file, a batch, or a number of steps', () => {
    const requests = [
      downRequest('1-a.js', {}, CONFIG),
      downRequest(undefined, { to: '1-a.js' }, CONFIG),
      downRequest(undefined, { batch: 2 }, CONFIG),
      downRequest(undefined, { steps: 3, force: true }, CONFIG),
    ]
    assert.deepEqual(
      requests.map(
        (each) => each.command === 'down' && [each.file, each.to, each.batch, each.steps],
      ),
      [
        ['1-a.js', null, null, null],
        [null, '1-a.js', null, null],
        [null, null, 2, null],
        [null, null, null, 3],
      ],
    )
  })

  it('for a dry run is the request of the run', () => {
    const up = { to: '1-a.js' }
    assert.deepEqual(dryRunRequest('up', undefined, up, CONFIG), upRequest(undefined, up, CONFIG))
    const down = { steps: 2, force: true }
    assert.deepEqual(
      dryRunRequest('down', undefined, down, CONFIG),
      downRequest(undefined, down, CONFIG),
    )
  })

  it('for redo and mark takes the lock, as the configuration says', () => {
    const config = { ...CONFIG, onLockHeld: 'wait' }
    const redo = redoRequest(undefined, config)
    const mark = markRequest('1-a.js', 'applied', { reason: ' by hand ' }, config)
    assert.deepEqual([redo.command === 'redo' && redo.file, redo.noLock], [null, false])
    assert.equal(mark.command === 'mark' && mark.reason, 'by hand')
    assert.deepEqual([redo.onLockHeld, mark.onLockHeld, mark.noLock], ['wait', 'wait', false])
  })

  /** @type {[what: string, make: () => unknown, code: string, message: RegExp][]} */
  const refused = [
    [
      'force without a file',
      () => upRequest(undefined, { force: true }, CONFIG),
      'INVALID_ARGUMENT',
      /needs the file/,
    ],
    [
      'a batch and steps',
      () => downRequest(undefined, { batch: 1, steps: 1 }, CONFIG),
      'INVALID_ARGUMENT',
      /`batch` and `steps`/,
    ],
    [
      'a file and steps',
      () => downRequest('a.js', { steps: 1 }, CONFIG),
      'INVALID_ARGUMENT',
      /a file and `steps`/,
    ],
    [
      'no steps',
      () => downRequest(undefined, { steps: 0 }, CONFIG),
      'INVALID_ARGUMENT',
      /`steps` must be a whole number, 1/,
    ],
    [
      'a file and the last one',
      () => upRequest('a.js', { to: 'b.js' }, CONFIG),
      'INVALID_ARGUMENT',
      /a file and `to`/,
    ],
    [
      'steps upwards',
      () => dryRunRequest('up', undefined, { steps: 1 }, CONFIG),
      'INVALID_ARGUMENT',
      /`steps` are for down/,
    ],
    [
      'a mark without a file',
      () => markRequest(/** @type {any} */ (undefined), 'applied', {}, CONFIG),
      'INVALID_ARGUMENT',
      /needs a file/,
    ],
    [
      'a state that nothing can be in',
      () => markRequest('a.js', /** @type {any} */ ('done'), {}, CONFIG),
      'INVALID_ARGUMENT',
      /"applied" or "pending", not "done"/,
    ],
    [
      'half a batch',
      () => downRequest(undefined, { batch: 1.5 }, CONFIG),
      'INVALID_ARGUMENT',
      /`batch` must/,
    ],
    [
      'a wait that is text',
      () => upRequest(undefined, { lockWaitTimeoutMs: /** @type {any} */ ('30s') }, CONFIG),
      'INVALID_ARGUMENT',
      /`lockWaitTimeoutMs` must.*"30s"/,
    ],
    [
      'a wait that no timer holds',
      () => upRequest(undefined, { lockWaitTimeoutMs: 2 ** 31 }, CONFIG),
      'INVALID_ARGUMENT',
      /`lockWaitTimeoutMs` must be a whole number, from 0 to 2147483647, not 2147483648/,
    ],
    [
      'a pause between two looks that no timer holds',
      () => upRequest(undefined, { lockPollIntervalMs: 2 ** 53 - 1 }, CONFIG),
      'INVALID_ARGUMENT',
      /`lockPollIntervalMs` must/,
    ],
    [
      'an unknown policy',
      () => upRequest(undefined, { onLockHeld: /** @type {any} */ ('panic') }, CONFIG),
      'INVALID_ARGUMENT',
      /"panic"/,
    ],
  ]
  for (const [what, make, code, message] of refused) {
    it(`is refused with ${what}`, () => assert.throws(make, { code, message }))
  }

  it('is refused for a name that leads out of the directory', () => {
    for (const name of ['../a.js', 'a/b.js', 'a\\b.js', 'a\0.js', '.', '..', '']) {
      assert.throws(() => upRequest(name, {}, CONFIG), { code: 'MIGRATION_INVALID_NAME' })
    }
    assert.throws(() => upRequest(/** @type {any} */ (7), {}, CONFIG), {
      code: 'MIGRATION_INVALID_NAME',
    })
  })
})
