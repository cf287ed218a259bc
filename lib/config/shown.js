/**
 * The configuration for a reader: every key, its value without secrets, and where that came from.
 */
import { showValue } from './problems.js'
import { OPTIONS } from './schema.js'

/** @import { Resolved, Source } from './index.js' */

/**
 * @typedef {object} Setting
 * @property {string} key
 * @property {string | null} shown its value, without secrets; `null` when it is not set
 * @property {Source} source
 * @property {string} from the source in words: `MMK_URI in .env`
 */

/**
 * Every key, in the order of the table of keys.
 * @param {Resolved} resolved
 * @returns {Setting[]}
 */
export function shownSettings({ config, provenance, origins }) {
  return OPTIONS.map(({ key, secret }) => {
    const value = /** @type {Record<string, unknown>} */ (config)[key]
    const from = value === undefined ? 'not set' : origins[key]
    return { key, shown: shownValue(value, secret), source: provenance[key], from }
  })
}

/** @param {unknown} value @param {boolean} [secret] */
function shownValue(value, secret) {
  if (value === undefined) return null
  if (Array.isArray(value)) return value.map((each) => showValue(each)).join(', ')
  // What an object holds may be a secret that nobody can recognise; its keys are none.
  if (isPlain(value)) return `an object: ${Object.keys(value).join(', ')}`
  return showValue(value, secret)
}

/** @param {unknown} value @returns {value is object} */
function isPlain(value) {
  return (
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  )
}
