/**
 * What is odd about the changelog's entries and indexes. Pure. Nothing is expected of an entry's fields.
 */
import { escapeText, plural } from '../text.js'
import { note, ok, problem } from './finding.js'

/** @import { Document } from 'mongodb' */
/** @import { MmkConfig } from '../../index.d.ts' */
/** @import { ServerFacts } from './facts.js' */
/** @import { Finding } from './finding.js' */

const STATES = ['running', 'applied', 'failed', 'reverted']
/** The unique index of mongo-migrate-kit 1.x. */
const OLD_INDEX = 'name_1'
const MOST_NAMED = 5

/** @param {ServerFacts} server @param {Readonly<MmkConfig>} config @returns {Finding[]} */
export function changelogFindings({ entries, indexes }, { namespace }) {
  const odd = (entries ?? []).filter(isUnreadable)
  const renamed = (entries ?? []).filter((entry) => !odd.includes(entry) && isRenamed(entry))
  const list = []
  if (odd.length > 0) {
    const ids = some(odd, ({ _id }) => escapeText(_id))
    const says = `${plural(odd.length, 'entry', 'entries')} can't be read: ${ids}`
    list.push(problem('changelog', says, 'mend or remove them by hand'))
  } else if (entries !== null) {
    list.push(ok('changelog', `${plural(entries.length, 'entry', 'entries')}, all readable`))
  }
  if (renamed.length > 0) {
    const which = some(renamed, ({ _id, namespace, name }) => {
      return `\`_id\` says ${escapeText(_id)}, the fields ${escapeText(idOf(namespace, name))}`
    })
    const says = `${plural(renamed.length, 'entry', 'entries')} renamed by hand: ${which}`
    const todo = 'set `name` and `namespace` to what the `_id` says (`<namespace>/<name>`)'
    list.push(problem('changelog', says, todo))
  }
  const unique = indexes?.find(({ name, unique }) => name === OLD_INDEX && unique)
  if (unique && namespace !== undefined) {
    const says = `has the unique index ${OLD_INDEX} of version 1: two namespaces can't use the same file name`
    list.push(note('changelog', says, `drop ${OLD_INDEX} when no runner of version 1 is left`))
  }
  return list
}

/** @param {Document[]} entries @param {(entry: Document) => string} text */
function some(entries, text) {
  return (
    entries.slice(0, MOST_NAMED).map(text).join('; ') + (entries.length > MOST_NAMED ? ' …' : '')
  )
}

/** @param {Document} entry */
function isUnreadable({ name, status, version }) {
  const fine = typeof name === 'string' && STATES.includes(status)
  return !fine || (version !== undefined && Number.isNaN(Number(escapeText(version))))
}

/**
 * Version 1 gave ObjectIds. An entry of ours under another's name is found by that name, and keeps the
 * other's place: the claim of the file that the `_id` names would be refused for ever.
 * @param {Document} entry
 */
function isRenamed({ _id, name, namespace }) {
  return typeof _id === 'string' && _id.includes('/') && _id !== idOf(namespace, name)
}

/** As `created_id` in `src/changelog/mongo_entry.rs`. @param {unknown} namespace @param {string} name */
function idOf(namespace, name) {
  return `${typeof namespace === 'string' ? namespace : ''}/${name}`
}
