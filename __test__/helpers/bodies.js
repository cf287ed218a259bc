/**
 * Sources of migrations that many tests use. Each leaves a trace in the database that can be counted,
 * so that "ran once" is something to look up and not to believe.
 */

/**
 * Counts its runs in `runs`, one document per name.
 *
 * @param {string} name
 * @param {string} [more] statements after the count; `db`, `client` and `signal` are in reach
 */
export const counting = (name, more = '') => `
export async function up({ db, client, signal }) {
  await db.collection('runs').updateOne({ _id: '${name}' }, { $inc: { ups: 1 } }, { upsert: true })
  ${more}
}
export async function down({ db }) {
  await db.collection('runs').updateOne({ _id: '${name}' }, { $inc: { downs: 1 } }, { upsert: true })
}
`

/**
 * Statement: stay in the body until the test opens the gate with `openGate`, a minute at most.
 */
export const waitAtGate = `
  for (let i = 0; i < 2400 && !(await db.collection('gate').findOne({})); i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
`

/** @param {import('./database.js').Database} database */
export const openGate = ({ db }) => db.collection('gate').insertOne({ open: true })

/**
 * Statement: block the event loop.
 *
 * @param {number} ms
 */
export const blockLoop = (ms) => `
  const end = Date.now() + ${ms}
  while (Date.now() < end);
`

/**
 * @param {import('./database.js').Database} database
 * @param {string} name
 * @returns {Promise<{ ups: number, downs: number }>} how often the body of that name began
 */
export async function runsOf({ db }, name) {
  const found = await db.collection('runs').findOne({ _id: /** @type {any} */ (name) })
  return { ups: found?.ups ?? 0, downs: found?.downs ?? 0 }
}
