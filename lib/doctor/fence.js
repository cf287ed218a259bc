/** What `mmk doctor` says of the fence: its token, and the runs in its register. Pure. */
import { escapeText } from '../text.js'
import { note, problem } from './finding.js'

/** @import { ServerFacts } from './facts.js' */
/** @import { Finding } from './finding.js' */

/** @param {ServerFacts} server @returns {Finding[]} */
export function fenceFindings({ locks }) {
  const { token, unsettled } = locks?.find(({ _id }) => _id === 'mmk_fence') ?? {}
  const list = []
  if (token !== undefined && !canRise(token)) {
    const says = `the fencing token is ${escapeText(String(token))}, which no run can raise: none begins`
    const todo =
      'once no run is under way, set `token` of mmk_fence to a whole number above all that it ever was'
    list.push(problem('fence', says, todo))
  }
  if (Array.isArray(unsettled) && unsettled.length > 0) {
    const who = unsettled.map(whoOf).join(', ')
    const says = `${unsettled.length} that did not end cleanly, or still go on: ${who}`
    const todo = 'the next run looks for what they left on the server, and stops it'
    list.push(note('runs', says, todo))
  }
  return list
}

/** @param {any} token as the driver reads it: a `Long` where a number can't hold it */
const canRise = (token) =>
  Number.isSafeInteger(token) ||
  (token?._bsontype === 'Long' && !token.equals(token.constructor.MAX_VALUE))

/** @param {unknown} run of the register, whatever somebody has put there */
function whoOf(run) {
  const { pid = '?', host = 'an unknown host' } = Object(run)
  return `pid ${escapeText(String(pid))} on ${escapeText(String(host))}`
}
