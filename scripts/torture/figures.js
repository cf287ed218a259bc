/** The figures of a torture: how much happened, so that "no violation" can be weighed. Pure. */

/** @typedef {import('./history.js').Line} Line */
/** @typedef {Record<string, number>} Counts */

/**
 * @param {import('./checks/story.js').Evidence} evidence
 * @returns {Record<string, Counts>} heading to counts
 */
export function figuresOf({ history, facts }) {
  const all = (/** @type {string} */ ev) => history.filter((line) => line.ev === ev)
  const begun = all('effectBegun')
  const dead = all('ended').filter(({ signal }) => signal === 'SIGKILL')
  return {
    faults: counted(all('faultBegun'), ({ kind }) => kind),
    processes: counted(all('started'), ({ kind }) => kind),
    disturbances: {
      killed: dead.length,
      stopped: all('stopped').length,
      ...counted(all('pauseBegun'), ({ why }) => why),
      unlocked: all('unlocked').length,
    },
    lock: {
      acquired: all('lockAcquired').length,
      'taken over': all('lockAcquired').filter((line) => line.tookOverFrom !== null).length,
      armed: all('lockArmed').length,
      renewed: all('leaseRenewed').length,
      'renewals without an answer': all('renewalFailed').length,
      released: all('lockReleased').length,
      ...counted(all('leaseLost'), ({ cause }) => `lost: ${cause}`),
      'by 1.3.0': all('oldBodyBegun').length,
      'orphans found': all('orphansFound').length,
      ...counted(all('pipelineRefused'), () => 'pipelines refused'),
    },
    effects: {
      ...counted(begun, ({ kind }) => kind),
      ...counted(all('effectEnded'), ({ outcome }) => `ended: ${outcome}`),
      committed: facts.filter(({ kind }) => kind === 'effect').length,
    },
    migrations: {
      applied: all('migrationFinished').length,
      failed: all('migrationFailed').length,
      conflicts: all('claimConflict').length,
      reruns: all('migrationStarted').filter(({ rerunOf }) => rerunOf !== null).length,
    },
    runs: counted(all('roundEnded'), ({ outcome, error }) => error?.code ?? outcome),
    'command line': counted(
      all('ended').filter(({ kind }) => kind === 'cli'),
      ({ code, signal }) => `exit ${code ?? signal}`,
    ),
  }
}

/**
 * @param {readonly Line[]} lines
 * @param {(line: Line) => string} name
 * @returns {Counts}
 */
function counted(lines, name) {
  /** @type {Counts} */
  const counts = {}
  for (const line of lines) counts[name(line)] = (counts[name(line)] ?? 0) + 1
  return counts
}
