/** `mmk config`. */
import { snapshots } from '../helpers/snapshots.js'

/** @param {import('../helpers/snapshots.js').App} app */
const written = (app) =>
  app.write(
    'mmk.config.json',
    JSON.stringify({
      strict: true,
      mongoClientOptions: { auth: { username: 'a', password: 'b' } },
    }),
  )
const uri = 'mongodb://asha:s3cret@db.internal:27017/?authSource=admin'

snapshots('config', {
  'values from all sides': {
    args: ['config', '--uri', uri, '--db', 'shop', '--dir', '/srv/app/migrations'],
    given: written,
    env: { MMK_LOCK_TTL: '30' },
    columns: [60, 100, 140],
  },
  'the configuration has problems': {
    args: ['config', '--db', 'a/b'],
    given: (app) => app.write('mmk.config.json', '{ "strickt": true, "outOfOrder": "maybe" }'),
  },
})
