/** C0 to C3: fenced effects, and the tokens that fence them. The oplog is the judge of their order. */

/** @typedef {import('./story.js').Evidence} Evidence */
/** @typedef {import('./story.js').Story} Story */
/** @typedef {import('./index.js').Verdict} Verdict */

/** @param {Evidence} evidence @returns {Verdict} */
export function noEffectBehindANewerFence({ facts }) {
  const violations = []
  let checked = 0
  let highest = 0
  for (const { kind, id, after } of facts) {
    if (kind === 'fence' && after) highest = Math.max(highest, after.token)
    if (kind !== 'effect' || !after || after.token === null) continue
    checked += 1
    if (after.token < highest) {
      violations.push(`${id} (token ${after.token}) was committed after token ${highest} was armed`)
    }
    if (after.token > highest) violations.push(`${id} has token ${after.token}, which nobody armed`)
  }
  return { checked, violations }
}

/** @param {Evidence} evidence @returns {Verdict} */
export function effectsInTheOrderOfTokens({ facts }) {
  const effects = facts.filter(({ kind, after }) => kind === 'effect' && after?.token != null)
  const violations = []
  let last = 0
  for (const { id, after } of effects) {
    if (after?.token < last)
      violations.push(`${id} (token ${after?.token}) came after token ${last}`)
    last = Math.max(last, after?.token)
  }
  return { checked: effects.length, violations }
}

/** @param {Evidence} evidence @returns {Verdict} */
export function oneOwnerForEachToken({ facts }) {
  /** @type {Map<string, string>} */
  const owners = new Map()
  const violations = []
  for (const { kind, after } of facts) {
    if (!after || after.token == null) continue
    if (kind !== 'fence' && kind !== 'effect') continue
    const key = `${kind} of token ${after.token}`
    const owner = kind === 'fence' ? after.owner : after.run
    if ((owners.get(key) ?? owner) !== owner) {
      violations.push(`${key} belongs to ${owners.get(key)} and to ${owner}`)
    }
    owners.set(key, owner)
  }
  return { checked: owners.size, violations }
}

/** @param {Evidence} evidence @param {Story} story @returns {Verdict} */
export function noTokenTwice({ facts }, { runs }) {
  /** @type {Map<number, string>} */
  const stored = new Map()
  const violations = []
  let highest = 0
  for (const { kind, after } of facts) {
    if (kind !== 'fence' || !after) continue
    if (after.token < highest) violations.push(`The fence fell from ${highest} to ${after.token}`)
    highest = Math.max(highest, after.token)
    stored.set(after.token, after.owner)
  }
  /** @type {Map<number, string>} */
  const told = new Map()
  for (const { token, run, owner } of runs) {
    if (token === null) continue
    if (told.has(token))
      violations.push(`Token ${token} was given to ${told.get(token)} and ${run}`)
    told.set(token, run)
    if (stored.get(token) !== owner) {
      violations.push(`Run ${run} was told token ${token}, which is ${stored.get(token)}'s`)
    }
  }
  return { checked: told.size, violations }
}
