/**
 * Faults inside the server, while a test lasts. They hold for every connection, so each test names
 * the collection it means wherever the command has one.
 */
import { MongoClient } from 'mongodb'
import { gone } from './database.js'

/**
 * Make commands fail, hang or lose their connection: the server's `failCommand`.
 *
 * @param {import('node:test').TestContext} t the fault ends with this test
 * @param {string} uri
 * @param {import('mongodb').Document} data as the server takes it
 * @param {'alwaysOn' | { times: number }} [mode]
 * @returns {Promise<() => Promise<void>>} ends it now
 */
export function failCommand(t, uri, data, mode = 'alwaysOn') {
  return failPoint(t, uri, 'failCommand', mode, data)
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} uri
 * @param {string} name
 * @param {'alwaysOn' | { times: number }} [mode]
 * @param {import('mongodb').Document} [data]
 * @returns {Promise<() => Promise<void>>} ends it now
 */
export async function failPoint(t, uri, name, mode = 'alwaysOn', data = {}) {
  const set = async (/** @type {import('mongodb').Document} */ command) => {
    const client = new MongoClient(uri)
    try {
      await client.db('admin').command({ configureFailPoint: name, ...command })
    } finally {
      await client.close()
    }
  }
  const off = () => set({ mode: 'off' })
  await set({ mode, data })
  t.after(() => gone.has(uri) || off())
  return off
}
