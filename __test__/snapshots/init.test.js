/** `mmk init`. */
import { snapshots } from '../helpers/snapshots.js'

snapshots('init', {
  'a config is written': { args: ['init', '--db', 'shop'] },
  'a TypeScript config is written': { args: ['init', '--ts'] },
  'there is one already': {
    args: ['init'],
    given: (app) => app.write('mmk.config.js', 'export default {}\n'),
  },
})
