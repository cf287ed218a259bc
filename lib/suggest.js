/**
 * "Did you mean …?"
 */

/**
 * The edits (insert, delete, replace, swap neighbours) that turn one word into the other.
 * @param {string} from
 * @param {string} to
 */
function distance(from, to) {
  /** @type {number[][]} */
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)]
  for (let i = 1; i <= from.length; i += 1) {
    rows[i] = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = rows[i - 1][j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1)
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced)
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      if (swapped) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1)
    }
  }
  return rows[from.length][to.length]
}

/** Longer words than this are no typos of ours; it also bounds the work. */
const MAX_LENGTH = 60

/**
 * The known word that was probably meant.
 * @param {string} word
 * @param {readonly string[]} known
 * @returns {string | null}
 */
export function suggest(word, known) {
  if (word === '' || word.length > MAX_LENGTH) return null
  const ranked = known
    .map((each) => ({ each, edits: distance(word.toLowerCase(), each.toLowerCase()) }))
    .sort((one, other) => one.edits - other.edits)
  const [best] = ranked
  return best && best.edits <= Math.max(2, Math.floor(best.each.length / 3)) ? best.each : null
}

/**
 * The known name that was probably meant, also by one who left out its number or its extension.
 * @param {string} word
 * @param {readonly string[]} names
 * @returns {string | null}
 */
export function suggestName(word, names) {
  if (word === '') return null
  const holders = names.filter((name) => name.toLowerCase().includes(word.toLowerCase()))
  return holders.length === 1 ? holders[0] : suggest(word, names)
}
