/** `mmk init`. */
import { snapshots } from '../helpers/snapshots.js'

snapshots('init', {
  'a config is written': { args: ['init', '--db', 'shop'] },
  'a TypeScript config is written': { args: ['init', '--ts'] },
  'a password is written': {
    args: ['init', '--uri', 'mongodb://bob:s3cret@db.internal/shop', '--db', 'shop'],
  },
  'a migrate-mongo beside it has all from the environment': {
    args: ['init'],
    given: (app) =>
      app.write(
        'migrate-mongo-config.js',
        'export default { mongodb: { url: process.env.NO_SUCH_URI, databaseName: process.env.NO_SUCH } }',
      ),
  },
  'there is one already': {
    args: ['init'],
    given: (app) => app.write('mmk.config.js', 'export default {}\n'),
  },
})
