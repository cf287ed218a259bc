/** `mmk up`. */
import { holdLock } from '../helpers/database.js'
import { applied, edited, three, throwing } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('up', {
  'all of it is applied': { args: ['up'], migrations: three },
  'bodies print': {
    args: ['up'],
    migrations: {
      '1-talks.js': "export function up({ log }) { console.log('hello'); log('there') }",
    },
  },
  'there is nothing to do': { args: ['up'], migrations: three, given: applied() },
  'the second fails': {
    args: ['up'],
    migrations: { ...three, '2-two.js': throwing },
  },
  'the lock is held': {
    args: ['up'],
    migrations: three,
    given: (app) => holdLock(app.database, { namespace: 'orders-worker' }),
  },
  'a file that is applied is forced, after a yes': {
    args: ['up', '1-one.js', '--force'],
    migrations: three,
    given: applied('1-one.js'),
    answers: [['[y/N]', 'y\r']],
  },
  'an applied file has changed under --strict': {
    args: ['up', '--strict'],
    migrations: three,
    given: edited('1-one.js'),
  },
  'what would be applied': { args: ['up', '--dry-run'], migrations: three },
})
