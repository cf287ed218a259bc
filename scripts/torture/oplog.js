/**
 * Documents as the oplog tells them: pure, for the formats of MongoDB 4.4 to 6.0.
 *
 * An update is a whole document, a list of `$set` and `$unset` (4.4), or a nested difference (5.0
 * and later). Array differences are among them.
 */

/** @typedef {Record<string, any>} Document */

/**
 * @param {Document} before
 * @param {Document} change the `o` of an update's entry
 * @returns {Document} a new document
 */
export function updated(before, change) {
  if (change.diff) return patched(before, change.diff)
  if (change.$set || change.$unset) return assigned(before, change)
  return { ...change }
}

/**
 * @param {Document} before
 * @param {Document} change
 */
function assigned(before, { $set = {}, $unset = {} }) {
  const after = structuredClone(before)
  for (const [path, value] of Object.entries($set)) {
    const { parent, key } = place(after, path)
    parent[key] = value
  }
  for (const path of Object.keys($unset)) {
    const { parent, key } = place(after, path)
    delete parent[key]
  }
  return after
}

/** @param {Document} root @param {string} path */
function place(root, path) {
  const keys = path.split('.')
  const key = /** @type {string} */ (keys.pop())
  let parent = root
  for (const each of keys) {
    parent[each] ??= {}
    parent = parent[each]
  }
  return { parent, key }
}

/**
 * @param {any} before a document or an array
 * @param {Document} diff
 */
function patched(before, diff) {
  const isArray = diff.a === true
  const after = isArray ? [...before] : { ...before }
  if (isArray && typeof diff.l === 'number') after.length = diff.l
  for (const [name, value] of Object.entries(diff)) {
    if (isArray && (name === 'a' || name === 'l')) continue
    if (name === 'd') for (const key of Object.keys(value)) delete after[key]
    else if (name === 'i' || (name === 'u' && !isArray)) Object.assign(after, value)
    else if (name[0] === 's') after[name.slice(1)] = patched(after[name.slice(1)], value)
    else if (name[0] === 'u') after[name.slice(1)] = value
  }
  return after
}
