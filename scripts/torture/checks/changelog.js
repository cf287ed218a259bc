/** C9: entries move as they should, and a migration and its effect are one. */

/** @typedef {import('../oplog.js').Document} Document */
/** @typedef {import('./story.js').Evidence} Evidence */
/** @typedef {import('./story.js').Story} Story */
/** @typedef {import('./index.js').Verdict} Verdict */

/**
 * What may follow what. A run that dies leaves `running`, which another run may claim.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const next = {
  none: ['running'],
  running: ['running', 'applied', 'failed', 'none'],
  failed: ['running'],
  applied: [],
}

/** @param {Evidence} evidence @param {Story} story @returns {Verdict} */
export function entriesMoveAsTheyShould({ facts }, { all }) {
  const violations = []
  /** @type {Map<string, Document>} */
  const entries = new Map()
  let checked = 0
  for (const { kind, id, before, after } of facts) {
    if (kind !== 'entry') continue
    checked += 1
    const problem = moved(before, after)
    if (problem) violations.push(`${id} ${problem}`)
    if (after) entries.set(after.name, after)
  }
  violations.push(...effectsWithoutEntries(facts, entries))
  for (const { name, run, status } of all('migrationFinished')) {
    const entry = entries.get(name)
    if (run !== null && (entry?.status !== status || entry?.runId !== run)) {
      violations.push(`${name} was reported ${status} by ${run}, and is ${describe(entry)}`)
    }
  }
  return { checked, violations }
}

/**
 * @param {Document | null} before
 * @param {Document | null} after
 * @returns {string | null}
 */
function moved(before, after) {
  const from = before?.status ?? 'none'
  const to = after?.status ?? 'none'
  if (!next[from]?.includes(to)) return `went from ${from} to ${to}`
  const sameRun = before?.runId === after?.runId
  if (from !== 'running' || to === 'running') {
    return sameRun && from === to ? 'was claimed twice by one run' : null
  }
  // Only the run that began it may end it, unless it never began and the claim was taken back.
  if (after && !sameRun && !takenBack(before, after))
    return `was begun by ${before?.runId} and ended by ${after.runId}`
  return null
}

/** @param {Document | null} before @param {Document} after */
function takenBack(before, after) {
  const stood = before?.history?.at(-1)
  return stood?.status === after.status && stood.runId === after.runId
}

/** @param {Document | undefined} entry */
const describe = (entry) => (entry ? `${entry.status} by ${entry.runId}` : 'not there')

/**
 * The product's own transactions hold the effect and the entry together.
 * @param {import('../facts.js').Fact[]} facts
 * @param {Map<string, Document>} entries
 */
function effectsWithoutEntries(facts, entries) {
  const violations = []
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const { kind, id, after } of facts) {
    if (kind !== 'effect' || after?.kind !== 'transaction') continue
    counts.set(after.name, (counts.get(after.name) ?? 0) + 1)
    const entry = entries.get(after.name)
    if (entry?.status !== 'applied' || entry.runId !== after.run) {
      violations.push(`${id} is there, and its entry is ${describe(entry)}`)
    }
  }
  for (const [name, { status }] of entries) {
    const count = counts.get(name) ?? 0
    if (/-transaction\.js$/.test(name) && status === 'applied' && count !== 1) {
      violations.push(`${name} is applied, and has ${count} effects`)
    }
  }
  return violations
}
