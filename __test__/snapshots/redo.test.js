/** `mmk redo`. */
import { applied, three } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('redo', {
  'the latest is reverted and applied': { args: ['redo'], migrations: three, given: applied() },
  'there is nothing to do': { args: ['redo'], migrations: three },
  'the file is not applied': { args: ['redo', '2-two.js'], migrations: three },
})
