/**
 * What runs need of a user, compared with what the server says that he may do. Pure.
 *
 * Looking for one's own operations and ending them needs no privilege, so neither is listed.
 */

/** @import { Document } from 'mongodb' */

/**
 * @typedef {{ action: string, collection: string, without: string, vital: boolean }} Need
 *   `without`: what happens without it
 */

/**
 * @param {Document[]} privileges as `connectionStatus` shows them
 * @param {{ dbName: string, migrationsCollection: string, lockCollection: string }} config
 * @returns {Need[]} those that are not granted
 */
export function missingPermissions(privileges, { dbName, migrationsCollection, lockCollection }) {
  /** @param {string} collection @param {string} without @param {string[]} actions */
  const vital = (collection, without, actions) =>
    actions.map((action) => ({ action, collection, without, vital: true }))
  const needs = [
    ...vital(migrationsCollection, 'nothing can be read or recorded', ['find', 'insert', 'update']),
    ...vital(lockCollection, 'no run can begin', ['find', 'insert', 'update', 'remove']),
    {
      action: 'changeStream',
      collection: lockCollection,
      without: 'waiting for the lock polls',
      vital: false,
    },
  ]
  return needs.filter(
    ({ action, collection }) => !isGranted(privileges, action, dbName, collection),
  )
}

/**
 * @param {Document[]} privileges
 * @param {string} action
 * @param {string} db
 * @param {string} collection
 */
function isGranted(privileges, action, db, collection) {
  return privileges.some(({ resource, actions }) => {
    if (!actions.includes(action)) return false
    if (resource.anyResource === true) return true
    // An empty name stands for every database, or every collection.
    const covers = (/** @type {unknown} */ granted, /** @type {string} */ wanted) =>
      granted === '' || granted === wanted
    return covers(resource.db, db) && covers(resource.collection, collection)
  })
}
