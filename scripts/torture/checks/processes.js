/** Whatever happens, a process ends in a way that it can account for. */

/** @typedef {import('./story.js').Evidence} Evidence */
/** @typedef {import('./story.js').Story} Story */
/** @typedef {import('./index.js').Verdict} Verdict */

/** What `process.exit` in a body asks for, and what the command line may answer. */
const statuses = [0, 1, 3, 4, 5, 7]

/** @param {Evidence} _ @param {Story} story @returns {Verdict} */
export function nobodyBreaks(_, { all }) {
  const ended = all('ended').filter(({ kind }) => kind !== 'old')
  const violations = [
    ...all('broken').map(({ who, event, error }) => `${who}: ${event} ${error?.message}`),
    ...all('roundEnded')
      .filter(({ error }) => error && (!error.code || error.code === 'INTERNAL'))
      .map(({ who, error }) => `${who}: a run ended with ${error.name}: ${error.message}`),
    ...ended
      .filter(({ code, signal }) => !(signal === 'SIGKILL' || statuses.includes(code)))
      .map(({ worker, kind, code, signal }) => `${kind} ${worker} ended with ${signal ?? code}`),
  ]
  return { checked: ended.length, violations }
}
