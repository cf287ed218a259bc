/** `mmk create`. */
import { snapshots } from '../helpers/snapshots.js'

snapshots('create', {
  'a file is written': { args: ['create', 'Add user index'] },
  'the name has no letter': { args: ['create', '!!!'] },
  'there is no such template': { args: ['create', 'users', '--template', 'none.js'] },
  'no name is given': { args: ['create'] },
})
