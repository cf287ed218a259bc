/**
 * The database that a connection string names.
 */
import { howToSet, showValue } from './problems.js'
import { OPTIONS } from './schema.js'

/** @import { ConfigIssue } from '../../index.d.ts' */
/** @import { Source } from './index.js' */

/**
 * Takes the database's name from the URI's path.
 * @param {Record<string, any>} values
 * @param {Record<string, Source>} provenance
 * @param {ConfigIssue[]} issues is added to
 */
export function nameDatabase(values, provenance, issues) {
  const name = databaseIn(String(values.uri ?? ''))
  if (name === null) return
  values.dbName = name
  provenance.dbName = 'uri'
  const option = OPTIONS.find(({ key }) => key === 'dbName')
  const problem = option?.check(name)
  if (!option || !problem) return
  const received = showValue(name)
  issues.push({ key: 'dbName', problem, received, source: URI_PATH, howToSet: howToSet(option) })
}

export const URI_PATH = 'the path of the URI'

/**
 * @param {string} uri
 * @returns {string | null}
 */
export function databaseIn(uri) {
  const path = /^mongodb(?:\+srv)?:\/\/(?:[^/?]*@)?[^/?@]*\/([^?@]+)/.exec(uri)?.[1]
  try {
    return path === undefined ? null : decodeURIComponent(path)
  } catch {
    return null
  }
}
