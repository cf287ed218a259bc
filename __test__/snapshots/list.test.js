/** `mmk list`. */
import { applied, three } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('list', {
  'only the pending': {
    args: ['list', '--pending'],
    migrations: three,
    given: applied('2-two.js'),
  },
  'there is nothing to list': { args: ['list', '--applied'], migrations: three },
  'two filters': { args: ['list', '--pending', '--applied'], migrations: three },
})
