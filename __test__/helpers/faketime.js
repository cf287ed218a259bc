/**
 * Processes whose wall clock is wrong, by libfaketime, where scripts/faketime.js finds it.
 */
const library = process.env.MMK_TEST_FAKETIME

/** Why a test that needs it is skipped; `false` when it is there. */
export const noFaketime = library === undefined && 'libfaketime is not there'

/**
 * @param {`${'+' | '-'}${number}m`} offset
 * @returns {NodeJS.ProcessEnv} for a process whose clock is that far off. Monotonic clocks stay right.
 */
export const clockOff = (offset) => ({
  LD_PRELOAD: library,
  FAKETIME: offset,
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})
