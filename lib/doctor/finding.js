/**
 * One finding of `mmk doctor`.
 *
 * `note`: it works, but one should know. `problem`: a person must look at it.
 * @typedef {{ level: 'ok' | 'note' | 'problem', about: string, says: string, todo: string | null }} Finding
 */

/** @param {string} about @param {string} says @returns {Finding} */
export const ok = (about, says) => ({ level: 'ok', about, says, todo: null })
/** @param {string} about @param {string} says @param {string | null} [todo] @returns {Finding} */
export const note = (about, says, todo = null) => ({ level: 'note', about, says, todo })
/** @param {string} about @param {string} says @param {string} todo @returns {Finding} */
export const problem = (about, says, todo) => ({ level: 'problem', about, says, todo })
