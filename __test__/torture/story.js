/**
 * Small planted histories: a sound one, of two runs that take turns, and the means to spoil it.
 */

/** @typedef {import('../../scripts/torture/history.js').Line} Line */
/** @typedef {import('../../scripts/torture/facts.js').Fact} Fact */

export const ttlMs = 6000

/** @param {number} ms */
const date = (ms) => new Date(ms)

/** @param {number} t @param {number} pid @param {string} ev @param {object} [fields] @returns {Line} */
export const line = (t, pid, ev, fields = {}) => ({ t, who: `worker${pid}`, pid, ev, ...fields })

/**
 * A lock document of ours.
 * @param {string} run
 * @param {number} lockedAt
 * @param {number} [beats]
 */
export const lease = (run, lockedAt, beats = 0) => ({
  v: 2,
  owner: `owner-${run}`,
  leaseOwner: `owner-${run}`,
  runId: run,
  appName: `mmk/${run}`,
  beats,
  acquiredAt: date(lockedAt),
  lockedAt: date(lockedAt),
  expiresAt: date(lockedAt + ttlMs),
})

/** A lock document of 1.3.0, which took over one of ours. @param {number} lockedAt */
export const oldLock = (lockedAt) => ({
  ...lease('a', 0),
  owner: 'old',
  lockedAt: date(lockedAt),
})

/**
 * @param {Fact['kind']} kind
 * @param {number} wall
 * @param {string} id
 * @param {Fact['before']} before
 * @param {Fact['after']} after
 * @returns {Fact}
 */
export const fact = (kind, wall, id, before, after) => ({ kind, wall, id, before, after })

/** @param {number} wall @param {string} run @param {number} token */
export const armed = (wall, run, token) =>
  fact('fence', wall, 'mmk_fence', null, {
    token,
    owner: `owner-${run}`,
    at: date(wall),
    unsettled: [],
  })

/**
 * @param {number} wall
 * @param {string} run
 * @param {number} token
 * @param {'transaction' | 'own' | 'plain'} [kind]
 */
export function effect(wall, run, token, kind = 'own') {
  const name = `${run}-${kind}.js`
  const id = `${name}/${run}/0`
  const document = { _id: id, name, kind, run, token }
  return fact(kind === 'plain' ? 'plain' : 'effect', wall, id, null, document)
}

/** @param {string} name @param {string} status @param {string} runId */
export const entry = (name, status, runId) => ({ name, status, runId })

/** What run `a` and then run `b` leave behind when nothing goes wrong. */
export function soundStory() {
  /** @type {Line[]} */
  const history = [
    line(0, 1, 'calibrated', { wall: 0 }),
    ...runLines(1, 'a', 1, 100),
    ...runLines(2, 'b', 2, 10_000),
    line(12_000, 9, 'calmed'),
    line(20_000, 9, 'dismissed'),
  ]
  /** @type {Fact[]} */
  const facts = [...runFacts('a', 1, 90), ...runFacts('b', 2, 9990)]
  return { history, facts, ttlMs }
}

/** @param {number} pid @param {string} run @param {number} token @param {number} t */
function runLines(pid, run, token, t) {
  const own = { run, owner: `owner-${run}` }
  const { after: own1 } = effect(0, run, token)
  const { after: plain } = effect(0, run, token, 'plain')
  return [
    line(t, pid, 'lockAcquired', { ...own, token: null, tookOverFrom: null }),
    line(t + 20, pid, 'lockArmed', { ...own, token, fencingToken: token }),
    line(t + 30, pid, 'effectBegun', { ...own1 }),
    line(t + 40, pid, 'effectEnded', { ...own1, outcome: 'done' }),
    line(t + 50, pid, 'effectBegun', { ...plain }),
    line(t + 60, pid, 'effectEnded', { ...plain, outcome: 'done' }),
    line(t + 80, pid, 'migrationFinished', {
      ...own,
      name: `${run}-transaction.js`,
      status: 'applied',
      transaction: true,
    }),
    line(t + 3000, pid, 'leaseRenewed', { ...own, token, beats: 2 }),
    line(t + 4000, pid, 'lockReleased', { ...own, token }),
    line(t + 4100, pid, 'ended', { worker: pid, kind: 'cli', code: 0, signal: null }),
  ]
}

/** @param {string} run @param {number} token @param {number} wall */
function runFacts(run, token, wall) {
  const name = `${run}-transaction.js`
  const running = entry(name, 'running', run)
  return [
    fact('lock', wall, 'mmk_lock', null, lease(run, wall)),
    armed(wall + 20, run, token),
    fact('entry', wall + 25, name, null, running),
    effect(wall + 35, run, token),
    effect(wall + 55, run, token, 'plain'),
    effect(wall + 70, run, token, 'transaction'),
    fact('entry', wall + 70, name, running, entry(name, 'applied', run)),
    fact('bulk', wall + 80, '1', null, { op: `long/${run}`, token }),
    fact('lock', wall + 3000, 'mmk_lock', lease(run, wall), lease(run, wall + 3000, 2)),
    fact('lock', wall + 4000, 'mmk_lock', lease(run, wall + 3000, 2), null),
  ]
}
