/**
 * The MongoDB servers that `npm test` starts for the whole run. A single file runs against servers
 * of its own with `npm test -- --only <path>`.
 */

/** @param {string} name */
function fromEnv(name) {
  const uri = process.env[name]
  if (!uri) {
    throw new Error(`${name} is not set: run this file with \`npm test -- --only <path>\``)
  }
  return uri
}

/** A replica set of one member: transactions and change streams work. */
export const replicaSet = fromEnv('MMK_TEST_MONGO_URI')

/** A server on its own: neither works. */
export const standalone = fromEnv('MMK_TEST_STANDALONE_URI')
