/**
 * What a torture leaves out, and whether this machine would have what it takes: none of it counts as
 * passed.
 */
import { ensureFaketime } from '../faketime.js'
import { capture } from '../process.js'

/** @returns {Promise<string[]>} one line each */
export async function leftOut() {
  const [namespaces, faketime] = await Promise.all([
    process.getuid?.() === 0 && runs('ip', ['netns', 'list']),
    ensureFaketime(),
  ])
  return [
    `clock steps of servers and clients (libfaketime: ${here(faketime !== null)})`,
    `losses in the middle of the network (root and \`ip netns\`: ${here(namespaces)})`,
    'a paused virtual machine, whose monotonic clock stands still with it',
    'workers on several machines, with clocks of their own',
  ]
}

/** @param {string} program @param {string[]} args */
const runs = async (program, args) => (await capture(program, args)).code === 0

/** @param {boolean} available */
const here = (available) => (available ? 'would be here' : 'not here')
