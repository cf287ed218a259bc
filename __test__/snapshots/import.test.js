/** `mmk import`. */
import { three } from '../helpers/given.js'
import { snapshots } from '../helpers/snapshots.js'

/** @param {import('../helpers/snapshots.js').App} app */
const changelog = ({ database: { db } }) =>
  db.collection('changelog').insertMany([
    { fileName: '1-one.js', appliedAt: new Date('2024-05-01T08:00:00Z') },
    { fileName: '2-two.js', appliedAt: new Date('2024-05-02T08:00:00Z') },
    { fileName: '3-three.js', appliedAt: 'yesterday' },
  ])

snapshots('import', {
  'a history is taken over': { args: ['import'], migrations: three, given: changelog },
  'what would be written': { args: ['import', '--dry-run'], migrations: three, given: changelog },
  'there is nothing to import': { args: ['import'], migrations: three },
  'there is no such tool': { args: ['import', '--tool', 'flyway'], migrations: three },
})
