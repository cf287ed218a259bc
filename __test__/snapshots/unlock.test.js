/** `mmk unlock`. */
import { holdLock } from '../helpers/database.js'
import { snapshots } from '../helpers/snapshots.js'

/** @param {import('../helpers/snapshots.js').App} app */
const held = (app) => holdLock(app.database)

snapshots('unlock', {
  'the lock is free': { args: ['unlock'] },
  'the lock is held, and released after a yes': {
    args: ['unlock'],
    given: held,
    answers: [['[y/N]', 'yes\r']],
  },
  'the lock is held, and kept after a no': {
    args: ['unlock'],
    given: held,
    answers: [['[y/N]', '\r']],
  },
  'the lock is held, and kept after Ctrl-C': {
    args: ['unlock'],
    given: held,
    answers: [['[y/N]', '\u0003']],
  },
  'the lock is held, and kept at the end of the input': {
    args: ['unlock'],
    given: held,
    answers: [['[y/N]', '\u0004']],
  },
  'the lock of another namespace is released': {
    args: ['unlock', '--yes', '--namespace', 'orders-api'],
    given: (app) => holdLock(app.database, { namespace: 'orders-worker' }),
  },
})
