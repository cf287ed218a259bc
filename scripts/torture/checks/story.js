/**
 * The histories of a torture, told by run and by process: what the checks ask about who believed what,
 * and when. Pure.
 */

/** @typedef {import('../history.js').Line} Line */
/** @typedef {import('../facts.js').Fact} Fact */

/** @typedef {{ from: number, to: number, why: string }} Span on the clock of the histories */

/**
 * @typedef {object} Run one lease of ours
 * @property {string} run
 * @property {string} owner
 * @property {number} pid
 * @property {number | null} token
 * @property {number} acquiredAt when it was told, after the fact
 * @property {number | null} armedAt
 * @property {{ at: number, beats: number }[]} renewals
 * @property {number} workedAt the last that it did
 * @property {number | null} endedAt when it knew that it no longer held the lock, or its process ended
 *
 * @typedef {object} Evidence
 * @property {Line[]} history
 * @property {Fact[]} facts
 * @property {number} ttlMs
 *
 * @typedef {object} Story
 * @property {Run[]} runs in the order of their acquisition
 * @property {(pid: number) => Span[]} pausesOf
 * @property {Span[]} troubles faults of the servers and the network, with their aftermath
 * @property {(wall: number) => number} local instant of a server's
 * @property {(ev: string) => Line[]} all
 */

/** An election, and the drivers' finding out about it. */
const aftermathMs = 6000
const work = ['lockArmed', 'leaseRenewed', 'migrationStarted', 'migrationFinished', 'effectBegun']
const ofTheNetwork = ['stopPrimary', 'killPrimary', 'cutPrimary', 'cutWorker', 'stepDown']

/** @param {Evidence} evidence @returns {Story} */
export function tell({ history }) {
  /** @type {Map<string, Line[]>} */
  const byEvent = new Map()
  for (const line of history) {
    const known = byEvent.get(line.ev)
    if (known) known.push(line)
    else byEvent.set(line.ev, [line])
  }
  const all = (/** @type {string} */ ev) => byEvent.get(ev) ?? []
  const endOf = new Map(all('ended').map(({ worker, t }) => [worker, t]))
  const pauses = pausesByProcess(all, endOf)
  const [calibrated] = all('calibrated')
  const offset = calibrated ? calibrated.wall - calibrated.t : 0
  return {
    runs: runsOf(history, endOf),
    pausesOf: (pid) => pauses.get(pid) ?? [],
    troubles: troublesOf(all),
    local: (wall) => wall - offset,
    all,
  }
}

/** @param {readonly Line[]} history @param {Map<number, number>} endOf */
function runsOf(history, endOf) {
  /** @type {Map<string, Run>} */
  const runs = new Map()
  for (const line of history) {
    if (line.ev === 'lockAcquired') {
      const { run, owner, pid, t } = line
      const endedAt = endOf.get(pid) ?? null
      runs.set(run, {
        run,
        owner,
        pid,
        token: null,
        acquiredAt: t,
        workedAt: t,
        armedAt: null,
        renewals: [],
        endedAt,
      })
    }
    const run = runs.get(line.run)
    if (run) advance(run, line)
  }
  return [...runs.values()]
}

/** @param {Run} run @param {Line} line */
function advance(run, { ev, t, beats, fencingToken }) {
  if (work.includes(ev)) run.workedAt = t
  if (ev === 'lockArmed') {
    run.token = fencingToken
    run.armedAt = t
  }
  if (ev === 'leaseRenewed') run.renewals.push({ at: t, beats })
  if (ev === 'leaseLost' || ev === 'lockReleased') run.endedAt = Math.min(run.endedAt ?? t, t)
}

/**
 * @param {Story['all']} all
 * @param {Map<number, number>} endOf
 */
function pausesByProcess(all, endOf) {
  /** @type {Map<number, Span[]>} */
  const pauses = new Map()
  const ends = [...all('woken'), ...all('pauseEnded')].map((line) => {
    return { pid: line.worker ?? line.pid, t: line.t }
  })
  for (const line of [...all('stopped'), ...all('pauseBegun')]) {
    const pid = line.worker ?? line.pid
    const end = ends.filter((each) => each.pid === pid && each.t > line.t).map(({ t }) => t)
    const to = Math.min(...end, endOf.get(pid) ?? Number.POSITIVE_INFINITY)
    const known = pauses.get(pid) ?? []
    pauses.set(pid, [...known, { from: line.t, to, why: line.why ?? 'stopped' }])
  }
  return pauses
}

/** @param {Story['all']} all @returns {Span[]} */
function troublesOf(all) {
  const ends = all('faultEnded')
  return all('faultBegun')
    .filter(({ kind }) => ofTheNetwork.includes(kind))
    .map(({ kind, t }) => {
      const end = ends.find((line) => line.kind === kind && line.t > t)
      return { from: t, to: (end?.t ?? t) + aftermathMs, why: kind }
    })
}

/** @param {Span} span @param {number} from @param {number} to */
export const overlaps = (span, from, to) => span.from < to && span.to > from
