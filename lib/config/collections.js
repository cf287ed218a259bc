/**
 * The changelog and the lock can't share a collection: the lock would be read as an entry without a
 * name, and whoever keeps one of the two under its old name no longer sees the other.
 */
import { howToSet, showValue } from './problems.js'
import { OPTIONS } from './schema.js'

/** @import { ConfigIssue } from '../../index.d.ts' */

const KEYS = ['migrationsCollection', 'lockCollection']

/**
 * @param {Record<string, any>} values
 * @param {Readonly<Record<string, string>>} origins
 * @param {readonly ConfigIssue[]} known what is wrong with either of them by itself has been said
 * @returns {ConfigIssue[]}
 */
export function collectionIssues({ migrationsCollection, lockCollection }, origins, known) {
  if (migrationsCollection !== lockCollection) return []
  if (known.some(({ key }) => KEYS.includes(key))) return []
  // What was set is to be changed, rather than what has always been so.
  const [key, other] = origins.lockCollection === 'default' ? KEYS : KEYS.toReversed()
  const option = OPTIONS.find((each) => each.key === key)
  return [
    {
      key,
      problem: `must not be the collection of "${other}" too: the changelog and the lock need one each`,
      received: showValue(migrationsCollection),
      source: origins[key],
      ...(option && { howToSet: howToSet(option) }),
    },
  ]
}
