/** `mmk mark`. */
import { applied, three } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('mark', {
  'one is applied': {
    args: ['mark', '1-one.js', '--applied', '--reason', 'restored from a dump'],
    migrations: three,
  },
  'one is not': {
    args: ['mark', '1-one.js', '--pending'],
    migrations: three,
    given: applied('1-one.js'),
  },
  'it is so already': { args: ['mark', '1-one.js', '--pending'], migrations: three },
  'nobody says what is so': { args: ['mark', '1-one.js'], migrations: three },
  'there is no such file': { args: ['mark', '9-nine.js', '--applied'], migrations: three },
})
