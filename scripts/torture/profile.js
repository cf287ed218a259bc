/**
 * How hard a torture is, in numbers: what bodies do, what befalls them, how often. A mutant gets the
 * profile in which its fault has the most chances to show; the product must pass that one too.
 */

/**
 * @typedef {'transaction' | 'own' | 'plain' | 'long' | 'block' | 'throw' | 'exit' | 'old'} BodyKind
 *   `old` is what runs of 1.3.0 do
 * @typedef {'killWorker' | 'stopWorker' | 'killAndUnlock' | 'unlock' | 'stopPrimary' | 'killPrimary'
 *   | 'cutPrimary' | 'cutWorker' | 'stepDown'} FaultKind
 *
 * @typedef {object} Profile
 * @property {number} ttlMs
 * @property {number} oldRunners processes of mongo-migrate-kit 1.3.0 in the fleet
 * @property {[number, number]} oldRestMs between two runs of such a process
 * @property {Partial<Record<BodyKind, number>>} bodies
 * @property {Partial<Record<FaultKind, number>>} faults
 * @property {[number, number]} restMs between two faults
 * @property {[number, number]} cutMs how long a primary is cut off
 * @property {number} aimed the share of the faults that take whoever holds the lock, and not anybody
 * @property {boolean} sparesOld are runs of 1.3.0 left alone? A dead one bars everybody for a while
 * @property {number} stranded the chance that a process is cut off together with a primary
 * @property {number} selfStop the chance that a process stops itself inside an open transaction
 * @property {number} unlocked the share of rounds that run with `noLock`
 * @property {number} ownClient the share of API rounds that bring their own client, which nobody closes
 *   when the lease is lost: there the fence has to do alone
 * @property {number} cliShare of the processes; each runs once, and others forty times
 * @property {number} patient the share of runs that wait for the lock
 * @property {[number, number]} longMs how long an operation on the server lasts
 */

/** Documents that a long operation works through. They are there before the torture begins. */
export const bulkSize = 400

/** @type {Profile} */
const usual = {
  ttlMs: 6000,
  oldRunners: 1,
  oldRestMs: [1000, 8000],
  bodies: { transaction: 38, own: 25, plain: 20, long: 12, block: 1, throw: 5, exit: 3 },
  faults: {
    killWorker: 3,
    stopWorker: 4,
    killAndUnlock: 2,
    unlock: 1,
    stopPrimary: 2,
    killPrimary: 2,
    cutPrimary: 2,
    cutWorker: 2,
    stepDown: 2,
  },
  restMs: [1000, 4000],
  cutMs: [3000, 9000],
  aimed: 0.5,
  sparesOld: false,
  stranded: 0.5,
  selfStop: 0.08,
  unlocked: 0.08,
  ownClient: 0.3,
  cliShare: 0.85,
  patient: 0.8,
  longMs: [500, 7000],
}

/**
 * Nothing but fenced bodies, on clients that nobody closes, and leases that run out by pauses alone:
 * the faults of servers abort open transactions, and hide what is missing.
 * @type {Partial<Profile>}
 */
const fencedOnly = {
  oldRunners: 0,
  bodies: { transaction: 50, own: 50 },
  faults: { stopWorker: 2, unlock: 3 },
  selfStop: 0.2,
  unlocked: 0,
  ownClient: 1,
}

/**
 * The mutants of the core (`src/mutant.rs`), with the check that must catch each.
 *
 * @type {Readonly<Record<string, { caughtBy: readonly string[], profile: Partial<Profile> }>>}
 */
export const mutants = {
  'no-fence': { caughtBy: ['C0', 'C1'], profile: fencedOnly },
  'noop-fence': { caughtBy: ['C0', 'C1'], profile: fencedOnly },
  'beats-w1': {
    caughtBy: ['C5'],
    profile: {
      oldRunners: 0,
      // It needs no server, so its run outlives the failover.
      bodies: { block: 1 },
      faults: { cutPrimary: 1 },
      restMs: [1000, 2000],
      // What is written with the primary, and with nobody else, is rolled back. The holder must still
      // trust its lease when it is heard again.
      cutMs: [4500, 6500],
      aimed: 1,
      stranded: 1,
      unlocked: 0,
      ownClient: 0,
    },
  },
  'expires-only': {
    caughtBy: ['C5'],
    profile: {
      oldRunners: 3,
      oldRestMs: [300, 2500],
      bodies: { plain: 1 },
      faults: { killWorker: 1 },
      restMs: [1000, 3000],
      aimed: 1,
      sparesOld: true,
      unlocked: 0,
      // Hardly anybody of ours is there when the lease of a dead one ends: 1.3.0 takes it over.
      patient: 0,
      cliShare: 1,
    },
  },
  'no-cleanup': {
    caughtBy: ['C7'],
    profile: {
      oldRunners: 0,
      bodies: { long: 1 },
      longMs: [4000, 9000],
      faults: { killAndUnlock: 1 },
      unlocked: 0,
      ownClient: 0,
    },
  },
  'no-precondition': {
    caughtBy: ['C9'],
    profile: { oldRunners: 0, unlocked: 1, faults: { stopWorker: 1 }, cliShare: 0 },
  },
  'guarded-insert': { caughtBy: ['C10', 'C8'], profile: {} },
}

/** @param {string} [mutant] @returns {Profile} */
export function profileFor(mutant) {
  return mutant === undefined ? usual : { ...usual, ...mutants[mutant]?.profile }
}
