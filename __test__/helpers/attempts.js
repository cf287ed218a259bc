/**
 * A transactional migration in the test's own process that counts its attempts and lets the test act
 * at the start of the first one: after the claim, with the lock armed.
 */
import { api } from './api.js'
import { failCommand } from './fail-point.js'

/**
 * @typedef {object} Attempts
 * @property {number} count how often the body began
 * @property {(appName: string) => unknown} first called by the first attempt with the `appName` of its
 *   client, so that a fault can mean this client alone
 *
 * @param {import('node:test').TestContext} t
 * @param {{ before?: string, after?: string }} [statements] around the body's one write, which goes into
 *   `seen` and says which attempt it is of; `attempt`, `db`, `client` and `session` are in reach
 * @returns {Promise<import('./api.js').Api & {
 *   attempts: Attempts
 *   seen: () => Promise<number[]>
 *   failing: (data: import('mongodb').Document, mode?: 'alwaysOn' | { times: number }) => void
 * }>}
 */
export async function attempting(t, { before = '', after = '' } = {}) {
  const key = `mmk attempts ${Math.random()}`
  const made = await api(t, {
    '1-body.js': `
      export const useTransaction = true
      export async function up({ db, client, session }) {
        const attempts = globalThis[${JSON.stringify(key)}]
        const attempt = (attempts.count += 1)
        if (attempt === 1) await attempts.first(client.options.appName)
        ${before}
        await db.collection('seen').insertOne({ attempt }, { session })
        ${after}
      }`,
  })
  const { database } = made
  await database.db.createCollection('seen')
  /** @type {Attempts} */
  const attempts = { count: 0, first: () => {} }
  Reflect.set(globalThis, key, attempts)
  t.after(() => Reflect.deleteProperty(globalThis, key))
  return {
    ...made,
    attempts,
    seen: async () => {
      const documents = await database.db.collection('seen').find().toArray()
      return documents.map(({ attempt }) => attempt)
    },
    failing: (data, mode) => {
      attempts.first = (appName) => failCommand(t, database.uri, { ...data, appName }, mode)
    },
  }
}
