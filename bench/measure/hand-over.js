/**
 * From one run to the next: how long after a release the waiter's first body begins.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { lockWatched } from '../../__test__/helpers/watching.js'
import { holdLock } from '../server.js'
import { load } from '../tools.js'
import { add, roundsOf, row } from './rounds.js'

/** @import { Context, Measurement, Row } from '../measurement.d.ts' */
/** @import { Place, Running, ToolId } from '../tools.js' */

/** How often both look where they can't listen: their own defaults. */
const pollMs = 500
const mark = Symbol.for('mongo-migrate-kit bench: a body began')
const body = `
export async function up() {
  globalThis[Symbol.for('${mark.description}')]()
}
export async function down() {}
`

const nothing = 'export async function up() {}\nexport async function down() {}\n'

/** @type {Measurement} */
export const handOver = {
  name: 'hand-over',
  title: 'Hand-over of the lock',
  about: `From the acknowledged release of the lock to the first body of the one run that waits for it, in one process. The database has been migrated before; the release comes at a random moment of a polling interval (${pollMs} ms, the default of both). migrate-mongo can't wait for its lock.`,
  run,
}

/** @param {Context} context @returns {Promise<Row[]>} */
async function run(context) {
  const { replicaSet, standalone } = context.stage.uris
  const kinds = [
    { uri: replicaSet, watched: true, rounds: roundsOf(context, 40, 3), row: onReplicaSet() },
    { uri: standalone, watched: false, rounds: roundsOf(context, 20, 2), row: onStandalone() },
  ]
  for (const { uri, watched, rounds, row: of } of kinds) {
    for (let round = rounds; round > 0; round -= 1) {
      add(of, 'ours', await handOverOnce(context, 'ours', uri, watched))
      add(of, 'oneX', await handOverOnce(context, 'oneX', uri, false))
    }
  }
  return kinds.map((kind) => kind.row)
}

const onReplicaSet = () => row('replica-set', 'on a replica set', 'ms', 'tail')
const onStandalone = () => row('standalone', 'on a standalone', 'ms', 'tail')

/**
 * @param {Context} context
 * @param {ToolId} tool
 * @param {string} uri
 * @param {boolean} watched it listens, and that can be seen on the server
 * @returns {Promise<number>} ms
 */
async function handOverOnce({ stage }, tool, uri, watched) {
  const app = await stage.app({ '0.js': nothing })
  const place = stage.place(app, uri)
  const db = stage.client(uri).db(place.dbName)
  const start = await load(tool)
  // Collections are made once in the life of a database, not with every deploy.
  await start(place)
  await writeFile(join(app.folder, 'migrations', '1.js'), body)
  const release = await holdLock(db)
  /** @type {Promise<number>} */
  const began = new Promise((resolve) => {
    Object.assign(globalThis, { [mark]: () => resolve(performance.now()) })
  })
  const { waits, ended } = waitingRun(start, place)
  await Promise.race([waits, ended])
  if (watched) await lockWatched(/** @type {any} */ ({ db, name: place.dbName }))
  await delay(Math.random() * pollMs)

  await release()
  const released = performance.now()
  await ended
  // A run that is over without its body would leave `began` open for ever.
  const at = await Promise.race([began, delay(0, Number.NaN)])
  if (Number.isNaN(at)) throw new Error(`${tool} ended without having run the body`)
  return at - released
}

/**
 * @param {(place: Place, how: Running) => Promise<number>} start
 * @param {Place} place
 */
function waitingRun(start, place) {
  /** @type {() => void} */
  let onWaiting = () => {}
  const waits = new Promise((resolve) => {
    onWaiting = () => resolve(undefined)
  })
  return { waits, ended: start(place, { wait: true, onWaiting }) }
}
