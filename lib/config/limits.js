/**
 * How much of a time is too much. What lies beyond is a slip of the hand, and would fail where nobody
 * looks for a setting: in a command to the server, or in a timer that fires at once.
 */

/**
 * A day. A crashed run keeps the lock for as long, and the patience of our commands is derived from it,
 * which the server takes in milliseconds of 31 bits.
 */
export const MAX_TTL_SECONDS = 86_400

/** Timers of Node, and of the server's `maxTimeMS`, hold no more: 24.8 days. */
export const MAX_MS = 2_147_483_647
