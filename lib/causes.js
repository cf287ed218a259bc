/**
 * What a thrown value names as its cause, and what the driver has labelled it with.
 *
 * Promises: looking never throws, whatever the value is.
 */
import { peek } from './location.js'

/** A chain of causes longer than this is a loop. */
const MAX_CAUSES = 6

/**
 * A thrown value and what it names as its cause, outermost first.
 * @param {unknown} value
 * @returns {unknown[]}
 */
export function causesOf(value) {
  const chain = []
  for (let each = value; each != null && chain.length < MAX_CAUSES; each = peek(each, 'cause')) {
    chain.push(each)
  }
  return chain
}

/**
 * Does a thrown value, or one that it names as its cause, carry this label of the driver's?
 * @param {unknown} value
 * @param {string} label
 */
export function hasLabel(value, label) {
  return causesOf(value).some((each) => {
    const labels = peek(each, 'errorLabels')
    return Array.isArray(labels) && labels.includes(label)
  })
}
