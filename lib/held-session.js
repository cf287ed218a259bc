/**
 * Keeps the end of a transaction out of the hands of the body that gets its session.
 *
 * Promises: while held, a commit or a second transaction through the driver's object is refused before it
 * reaches the server, and an abort waits for the end of the body, so that what is written after it is
 * rolled back too; each of them is remembered, also where the body catches the refusal. The session
 * may end at any time: a client that closes ends it. Who goes around the session's methods is seen by
 * `monitor.js`, on a client of ours.
 */

/** @import { ClientSession } from 'mongodb' */

const ADVICE = 'leave commit and abort to mongo-migrate-kit'
export const ENDED = `The migration ended its transaction itself: ${ADVICE}`

/**
 * @param {ClientSession} session in a transaction of ours
 * @returns {{ release: () => void, assertUntouched: () => void }}
 */
export function hold(session) {
  /** @type {Error | null} */
  let tried = null
  /** @param {string} message */
  const note = (message) => {
    const error = new Error(message)
    tried ??= error
    return error
  }
  const own = {
    commitTransaction: async () => {
      throw note(`The migration tried to commit its transaction itself: ${ADVICE}`)
    },
    startTransaction: () => {
      throw note(`The migration runs in a transaction and tried to start one itself: ${ADVICE}`)
    },
    // Not refused: who aborts in a `catch` is about to throw an error that says more than ours.
    abortTransaction: async () => {
      note(ENDED)
    },
    /** @param {Parameters<ClientSession['endSession']>} options */
    endSession: async (...options) => {
      release()
      return session.endSession(...options)
    },
  }
  const before = Object.getOwnPropertyDescriptors(session)
  const release = () => {
    for (const name of Object.keys(own)) {
      const earlier = Reflect.get(before, name)
      if (earlier) Object.defineProperty(session, name, earlier)
      else Reflect.deleteProperty(session, name)
    }
  }
  Object.assign(session, own)
  return {
    release,
    assertUntouched: () => {
      if (tried) throw tried
    },
  }
}
