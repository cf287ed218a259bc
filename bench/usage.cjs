/**
 * Preloaded into every measured process: what it has used, told on file descriptor 3 when it exits.
 * CommonJS, because an ES module would make each of them start the module loader first.
 */
const { writeSync } = require('node:fs')
const { peakMb } = require('./peak.cjs')

process.once('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  writeSync(3, JSON.stringify({ cpuMs: (userCPUTime + systemCPUTime) / 1000, rssMb: peakMb() }))
})
