/**
 * The app's own MongoDB driver is the one that its migrations get, in each major version we support.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const migrations = {
  // The server knows which driver asks: it was told when the connection was made.
  '1-plain.js': `
    export async function up({ db, client }) {
      const mine = [{ $currentOp: {} }, { $match: { 'command.comment': db.databaseName } }]
      const options = { comment: db.databaseName }
      const [operation] = await client.db('admin').aggregate(mine, options).toArray()
      const { version } = operation.clientMetadata.driver
      await db.collection('seen').insertOne({ _id: 1, driver: version })
    }`,
  '2-transaction.js': `
    export const useTransaction = true
    export const up = ({ db, session }) => db.collection('seen').insertOne({ _id: 2 }, { session })`,
}

for (const [major, driver] of /** @type {const} */ ([
  [6, 'mongodb-6'],
  [7, 'mongodb'],
])) {
  test(`migrations of an app with mongodb ${major} run on that driver, in transactions too`, async (t) => {
    const database = await freshDatabase(t)
    const { mmk } = await project(t, migrations, { env: database.env, driver })

    const { code, stdout, stderr } = await mmk(['up']).ended

    assert.equal(code, 0, stdout + stderr)
    const [plain, transactional] = await database.db.collection('seen').find().toArray()
    assert.match(plain?.driver, new RegExp(`^${major}\\.`))
    assert.equal(transactional?._id, 2)
  })
}
