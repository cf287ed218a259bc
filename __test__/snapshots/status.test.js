/** `mmk status`: the table on narrow and wide terminals, and what it says of odd entries and names. */
import { applied, edited, three } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

const entry = {
  version: 1,
  runId: '0b9f1f0e-0000-4000-8000-000000000000',
  direction: 'up',
  startedAt: new Date(0),
  executedBy: 'asha',
  host: 'deploy-a',
}

/** One in every state. @param {import('../helpers/snapshots.js').App} app */
async function everyState(app) {
  await edited('1-one.js')(app)
  const error = { name: 'MongoServerError', message: 'E11000\u001b[2J duplicate' }
  await app.database.db.collection('_mmk_migrations').insertMany([
    { _id: /** @type {any} */ ('/2-two.js'), name: '2-two.js', status: 'running', ...entry },
    {
      _id: /** @type {any} */ ('/3-three.js'),
      name: '3-three.js',
      status: 'failed',
      error,
      ...entry,
    },
    {
      _id: /** @type {any} */ ('/0-gone.js'),
      name: '0-gone.js',
      status: 'applied',
      batch: 1,
      appliedAt: new Date(0),
      duration: 4,
      checksum: 'a'.repeat(64),
      ...entry,
    },
  ])
}

const widths = [60, 120]
const longName = `2-${'a-very-long-name-'.repeat(5)}.js`

snapshots('status', {
  'one in every state': {
    args: ['status', '--utc'],
    migrations: { ...three, '4-new.js': three['1-one.js'] },
    given: everyState,
    columns: widths,
  },
  'long names and names with control characters': {
    args: ['status'],
    migrations: {
      '1-one.js': three['1-one.js'],
      [longName]: three['1-one.js'],
      '3-evil\u001b[2J\nname.js': three['1-one.js'],
      '4-日本語-été.js': three['1-one.js'],
    },
    columns: widths,
  },
  'there are no migrations': { args: ['status'] },
  'without colours': {
    args: ['status'],
    migrations: three,
    given: applied('1-one.js'),
    env: { NO_COLOR: '1' },
  },
  'with colours whatever it is': {
    args: ['status'],
    migrations: three,
    given: applied('1-one.js'),
    env: { NO_COLOR: '', FORCE_COLOR: '1' },
  },
  'the gate finds pending ones': { args: ['status', '--check'], migrations: three },
  'the gate finds one that needs a look': {
    args: ['status', '--check'],
    migrations: three,
    given: edited('1-one.js'),
  },
  'nothing is configured, and a variable and a file look as if they did': {
    args: ['status'],
    env: { MMK_URI: '', MMK_DB: '', MMK_DBNAME: 'shop' },
    given: (app) => app.write('mmk.config.yaml', ''),
  },
  'the configuration has problems': {
    args: ['status'],
    env: { MMK_URI: 'https://asha:hunter2@db.example/', MMK_LOCK_TTL: 'soon' },
  },
})
