/** `mmk down`. */
import { applied, edited, three, throwingDown } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('down', {
  'the last batch is reverted': { args: ['down'], migrations: three, given: applied() },
  'there is nothing to do': { args: ['down'], migrations: three },
  'the file has changed': { args: ['down'], migrations: three, given: edited('1-one.js') },
  'a changed file is forced, after a no': {
    args: ['down', '--force'],
    migrations: three,
    given: edited('1-one.js'),
    answers: [['[y/N]', 'no\r']],
  },
  'it fails': {
    args: ['down'],
    migrations: { '1-one.js': throwingDown },
    given: applied(),
  },
})
