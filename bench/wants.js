/**
 * What was wanted, and what came of it. Pure: reads results by the ids of their rows.
 */
import { ADDON_BUDGET } from './measure/size.js'
import { median, quantile, ratio } from './stats.js'
import { figure } from './table.js'

/** @import { Column, Result } from './measurement.d.ts' */

/**
 * @typedef {object} Want
 * @property {string} work
 * @property {string} want
 * @property {string} measured
 * @property {'yes' | 'no' | 'unknown'} met `unknown`: not part of this run
 *
 * @typedef {(name: string, id: string, column?: Column) => number[]} Samples throws when there are none
 * @typedef {{ work: string, want: string, measure: (samples: Samples) => [string, boolean] }} Rule
 */

class NotMeasured extends Error {}

/** Renewals and the like go by time: a longer run has some more, whatever its migrations ask. */
const BY_TIME = 0.1
/** Linear growth is 1 at most; the rest is for the spread of the three figures. */
const LINEAR = 1.2

/** @type {readonly Rule[]} */
const rules = [
  atMost('boot with nothing pending', 1, 'commands', ['commands', 'boot']),
  ratioAtMost('the same, time in process at 200 applied', 0.5, ['boot', 'time-200'], ['oneX']),
  {
    work: 'the same, for each applied file more',
    want: '≤ 15 µs',
    measure: (samples) => {
      const [few, many] = [samples('boot', 'time-10'), samples('boot', 'time-10000')].map(median)
      const perFile = ((Number(many) - Number(few)) / 9990) * 1000
      return [`${figure(perFile)} µs`, perFile <= 15]
    },
  },
  {
    work: '`up` as a whole process, from 10 to 2,000 applied',
    want: '≤ 1.5×',
    measure: (samples) => {
      const found = ratio(samples('boot', 'whole-2000'), samples('boot', 'whole-10'))
      return [`${figure(Number(found?.median))}×`, Number(found?.median) <= 1.5]
    },
  },
  growth('time', 'time'),
  growth('memory', 'peak memory'),
  statusAtMost(0.5),
  atMost('each further trivial migration', 1, 'commands', ['commands', 'plain']),
  atMost('each further migration in a transaction', 4, 'commands', ['commands', 'transactional']),
  {
    work: 'hand-over on a replica set',
    want: 'p50 ≤ 15 ms, p95 ≤ 50 ms',
    measure: (samples) => {
      const spans = samples('hand-over', 'replica-set')
      const [p50, p95] = [median(spans), quantile(spans, 0.95)]
      return [`p50 ${figure(p50)} ms, p95 ${figure(p95)} ms`, p50 <= 15 && p95 <= 50]
    },
  },
  atMost('50 that wait on a replica set, each in a second', 1, 'commands', [
    'crowd',
    'replica-set-waiting',
  ]),
  atMost('each of them from the release to its return', 10, 'commands', [
    'crowd',
    'replica-set-leaving',
  ]),
  atMost('50 that poll on a standalone, each in a second', 2, 'commands', [
    'crowd',
    'standalone-waiting',
  ]),
  {
    work: 'a blocked event loop',
    want: 'the lock is kept',
    measure: (samples) => {
      const over = Math.max(...samples('heartbeat', 'over'))
      const bodies = Math.max(...samples('heartbeat', 'bodies'))
      const kept = over === 0 && bodies === 1
      return [kept ? 'kept' : `${figure(over)} % without a lease, ${bodies} bodies`, kept]
    },
  },
  {
    work: 'the addon',
    want: `≤ ${figure(ADDON_BUDGET / 1e6)} MB`,
    measure: (samples) => {
      const size = median(samples('size', 'addon'))
      return [`${figure(size)} MB`, size <= ADDON_BUDGET / 1e6]
    },
  },
]

/**
 * @param {string} work
 * @param {number} limit
 * @param {string} unit
 * @param {readonly [string, string]} where measurement and row
 * @returns {Rule}
 */
function atMost(work, limit, unit, [name, id]) {
  return {
    work,
    want: `≤ ${limit} ${limit === 1 ? unit.replace(/s$/, '') : unit}`,
    measure: (samples) => {
      const value = median(samples(name, id))
      return [figure(value), value <= limit + BY_TIME]
    },
  }
}

/**
 * @param {string} work
 * @param {number} limit
 * @param {readonly [string, string]} where
 * @param {readonly Column[]} peers
 * @returns {Rule}
 */
function ratioAtMost(work, limit, [name, id], peers) {
  const names = { oneX: 'mmk 1.3', migrateMongo: 'migrate-mongo', ours: 'ours', node: 'Node' }
  return {
    work,
    want: `≤ ${limit}× of ${peers.map((peer) => names[peer]).join(' and ')}`,
    measure: (samples) => {
      const found = peers.map((peer) => {
        return Number(ratio(samples(name, id), samples(name, id, peer))?.median)
      })
      return [found.map((value) => `${figure(value)}×`).join(', '), found.every((v) => v <= limit)]
    },
  }
}

/**
 * What `status` takes of what it takes with our peers. The start of Node is the same for all, so what
 * each adds to it is told as well.
 *
 * @param {number} limit
 * @returns {Rule}
 */
function statusAtMost(limit) {
  const row = ratioAtMost(
    '`status`, whole process',
    limit,
    ['start', 'status-wall'],
    ['oneX', 'migrateMongo'],
  )
  return {
    ...row,
    measure: (samples) => {
      const [found, met] = row.measure(samples)
      const node = median(samples('start', 'node-wall', 'node'))
      /** @param {...any} column */
      const added = (...column) => median(samples('start', 'status-wall', ...column)) - node
      const beyond = [added('oneX'), added('migrateMongo')].map((theirs) => added() / theirs)
      const told = beyond.map((value) => `${figure(value)}×`).join(', ')
      return [`${found}; beyond \`node -e 0\` (${figure(node)} ms) ${told}`, met]
    },
  }
}

/**
 * Is growth worse than linear? What was measured at 10,000 files, beside the straight line through
 * what was measured at 10 and at 2,000.
 *
 * @param {'time' | 'memory'} kind
 * @param {string} work
 * @returns {Rule}
 */
function growth(kind, work) {
  return {
    work: `the same, ${work} at 10,000 applied beside the line through 10 and 2,000`,
    want: `≤ ${LINEAR}×`,
    measure: (samples) => {
      const at = (/** @type {number} */ size) => median(samples('boot', `${kind}-${size}`))
      const line = at(10) + ((at(2000) - at(10)) / (2000 - 10)) * (10_000 - 10)
      return [`${figure(at(10_000) / line)}×`, at(10_000) <= LINEAR * line]
    },
  }
}

/**
 * @param {readonly Result[]} results of a whole run or a part of one
 * @returns {Want[]}
 */
export function judge(results) {
  /** @type {Samples} */
  const samples = (name, id, column = 'ours') => {
    const result = results.find((each) => each.name === name)
    const found = result?.rows.find((row) => row.id === id)?.samples[column]
    if (!found?.length) throw new NotMeasured(`${name} ${id}`)
    return found
  }
  return rules.map(({ work, want, measure }) => {
    try {
      const [measured, met] = measure(samples)
      return { work, want, measured, met: met ? 'yes' : 'no' }
    } catch (error) {
      if (!(error instanceof NotMeasured)) throw error
      return { work, want, measured: '–', met: 'unknown' }
    }
  })
}
