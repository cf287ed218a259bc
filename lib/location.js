/**
 * Where the user's code threw, read from a thrown value's stack.
 *
 * Promises: looking never throws, whatever the value is. It does not promise the right column of a
 * TypeScript file that jiti had to compile: its lines are kept, its columns are not.
 */
import { fileURLToPath } from 'node:url'

/** Of a stack, this much is searched for the user's file. */
const MAX_STACK = 20_000

/**
 * A property of something that may not want to be looked at.
 * @param {any} value
 * @param {string} key
 * @returns {any}
 */
export function peek(value, key) {
  try {
    return value[key]
  } catch {
    return undefined
  }
}

/**
 * Where the user's code threw: the first frame that is neither Node's, nor a package's, nor ours.
 * @param {unknown} value
 * @returns {string | null} `path:line:column`
 */
export function locationOf(value) {
  const stack = peek(value, 'stack')
  if (typeof stack !== 'string') return null
  for (const line of stack.slice(0, MAX_STACK).split('\n')) {
    const address = /\((.*)\)$/.exec(line)?.[1] ?? line.replace(/^\s+at (?:async )?/, '')
    const frame = /^((?:file:\/\/\/?|\/|[A-Za-z]:\\).*):(\d+):(\d+)$/.exec(address)
    if (frame === null || /[\\/]node_modules[\\/]/.test(frame[1])) continue
    const path = toPath(frame[1])
    if (path !== null && !path.startsWith(OURS)) return `${path}:${frame[2]}:${frame[3]}`
  }
  return null
}

/** @param {string} address */
function toPath(address) {
  try {
    return address.startsWith('file://') ? fileURLToPath(address.replace(/\?.*$/, '')) : address
  } catch {
    return null
  }
}

const OURS = fileURLToPath(new URL('.', import.meta.url))
