/**
 * States of an app that its commands are shown in.
 */
import { MigratorKit } from 'mongo-migrate-kit'
import { counting } from './bodies.js'

/** @typedef {import('./snapshots.js').App} App */

export const three = {
  '1-one.js': counting('one'),
  '2-two.js': counting('two'),
  '3-three.js': counting('three'),
}

export const throwing = `
export async function up() {
  throw new RangeError('seven is too many')
}
`

export const throwingDown = `
export async function up() {}
export async function down() {
  throw new RangeError('it can not be undone')
}
`

/**
 * @param {(kit: MigratorKit, app: App) => Promise<unknown>} work
 * @returns {(app: App) => Promise<void>}
 */
function withKit(work) {
  return async (app) => {
    const { database, migrationsDir } = app
    const kit = new MigratorKit({ ...database.config, migrationsDir, logger: null })
    try {
      await work(kit, app)
    } finally {
      await kit.disconnect()
    }
  }
}

/** All of it, or one file. @param {string[]} files */
export const applied = (...files) =>
  withKit(async (kit) => {
    if (files.length === 0) await kit.up()
    for (const file of files) await kit.up(file)
  })

/** @param {string} file applied, and edited since */
export const edited = (file) => async (/** @type {App} */ app) => {
  await applied(file)(app)
  await app.write(`migrations/${file}`, `${counting('one')}// edited\n`)
}
