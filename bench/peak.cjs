/** The most that this process has had in memory. CommonJS for the sake of usage.cjs. */
const { readFileSync } = require('node:fs')

/**
 * `getrusage` on Linux counts what the parent had in memory when it forked; VmHWM does not.
 *
 * @returns {number} MB
 */
exports.peakMb = () => {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS / 1000
  const status = readFileSync('/proc/self/status', 'utf8')
  return (Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6
}
