/** Changelogs of other tools in the database, as long as nothing of ours has run there. */
import { escapeText, plural } from '../text.js'
import { note, problem } from './finding.js'

/** @import { Neighbour } from '../contract.d.ts' */
/** @import { Engine } from '../engine.js' */
/** @import { Finding } from './finding.js' */

/**
 * What can't be looked at is none: permissions and the directory are findings of their own.
 * @param {Engine} engine
 * @returns {Promise<Neighbour[]>}
 */
export async function neighbours({ core }) {
  const reply = await core.neighbours()
  return reply.ok ? reply.value : []
}

/**
 * A run refuses only what is pending here and applied there; the rest is for a person to know.
 * @param {Neighbour[]} neighbours
 * @returns {Finding[]}
 */
export function neighbourFindings(neighbours) {
  return neighbours.map(({ collection, tool, documents, pending, command }) => {
    const count = plural(documents, 'document')
    const where = `a changelog of ${tool} (${count}) is in "${escapeText(collection)}"`
    const todo = `\`${escapeText(command)}\` takes it over`
    if (pending.length === 0) return note('import', `${where}, and nothing was imported`, todo)
    const files = plural(pending.length, 'file')
    const says = `${where}, which says that ${files} pending here is applied: \`mmk up\` is refused`
    return problem('import', says, todo)
  })
}
