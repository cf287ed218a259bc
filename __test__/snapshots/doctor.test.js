/** `mmk doctor`. */
import { applied, edited, three } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('doctor', {
  'all is well': { args: ['doctor'], migrations: three, given: applied() },
  'there is nothing yet': { args: ['doctor'] },
  'a file has changed': { args: ['doctor'], migrations: three, given: edited('1-one.js') },
  'there is no server': {
    args: ['doctor', '--uri', 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100'],
  },
})
