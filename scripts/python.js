/**
 * Python 3, whose standard library makes the pseudo-terminals of some tests: neither Node nor npm
 * offers one without compiling something.
 */
import { capture } from './process.js'

const NAMES = ['python3', 'python']

/** @type {Promise<string | null> | null} */
let found = null

/** @returns {Promise<string | null>} its command */
export function findPython3() {
  found ??= search()
  return found
}

async function search() {
  for (const name of NAMES) {
    const { code, stdout } = await capture(name, [
      '-c',
      'import pty, sys; print(sys.version_info[0])',
    ])
    if (code === 0 && stdout.trim() === '3') return name
  }
  return null
}
