/** A torture's report, as lines. Pure. */

/** At most so many examples of a violation: the histories have all. */
const examples = 5

/**
 * @param {Pick<import('./torture.js').Options, 'seed' | 'seconds' | 'mutant' | 'refusePipelines'>} options
 * @param {import('./torture.js').Report} report
 * @returns {string[]}
 */
export function reportLines(
  { seed, seconds, mutant, refusePipelines },
  { version, findings, figures, leftOut, folder },
) {
  const what = [refusePipelines && ', pipelines refused', mutant && `, mutant ${mutant}`]
  return [
    '',
    `Torture on MongoDB ${version}: ${seconds} s of faults, seed ${seed}${what.filter(Boolean).join('')}`,
    ...Object.entries(figures).map(([heading, counts]) => `  ${heading}: ${listed(counts)}`),
    ...findings.flatMap(findingLines),
    ...notDone(figures, leftOut).map((text) => `  not done: ${text}`),
    folder ? `✖ violated; the histories are in ${folder}` : '✔ nothing was violated',
  ]
}

/** @param {import('./checks/index.js').Finding} finding */
function findingLines({ id, promise, checked, violations, notes = {} }) {
  const mark = violations.length > 0 ? '✖' : checked > 0 ? '✔' : '–'
  const counts = { checked, violations: violations.length, ...notes }
  return [
    `  ${mark} ${id.padEnd(3)} ${promise} (${listed(counts)})`,
    ...violations.slice(0, examples).map((text) => `        ${text}`),
  ]
}

/** @param {Record<string, number>} counts */
const listed = (counts) =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ') || 'none'

/**
 * @param {import('./torture.js').Report['figures']} figures
 * @param {readonly string[]} always
 */
function notDone(figures, always) {
  const old = figures.lock?.['by 1.3.0'] ? [] : ['runs of 1.3.0 beside ours']
  return [...old, ...always]
}
