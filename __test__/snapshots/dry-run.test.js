/** `mmk dry-run`. */
import { applied, three } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('dry-run', {
  'of up': { args: ['dry-run', 'up'], migrations: three, given: applied('1-one.js') },
  'of down, with nothing to do': { args: ['dry-run', 'down'], migrations: three },
  'of files that can not be used': {
    args: ['dry-run', 'up'],
    migrations: { ...three, '2-two.js': 'export const none = 1\n', '3-three.js': 'export up\n' },
  },
})
