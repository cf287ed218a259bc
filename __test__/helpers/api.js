/**
 * The API in the test's own process, with every event kept.
 */
import { freshDatabase } from './database.js'
import { project } from './project.js'

/**
 * @typedef {import('mongo-migrate-kit').MmkEvent} MmkEvent
 *
 * @typedef {object} Api
 * @property {import('./database.js').Database} database
 * @property {import('./project.js').Project} app
 * @property {{ uri: string, dbName: string, migrationsDir: string, logger: null }} config
 * @property {MmkEvent[]} events those of all runs that were given `onEvent`
 * @property {(event: MmkEvent) => void} onEvent
 * @property {<T extends MmkEvent['type']>(type: T) => Extract<MmkEvent, { type: T }>[]} eventsOf
 */

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} migrations
 * @param {string} [uri]
 * @returns {Promise<Api>}
 */
export async function api(t, migrations, uri) {
  const database = await freshDatabase(t, uri)
  const app = await project(t, migrations, database)
  /** @type {MmkEvent[]} */
  const events = []
  return {
    database,
    app,
    config: { ...database.config, migrationsDir: app.migrationsDir, logger: null },
    events,
    onEvent: (event) => void events.push(event),
    eventsOf: (type) => /** @type {any} */ (events.filter((event) => event.type === type)),
  }
}
