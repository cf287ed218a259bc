/**
 * A rolling deploy: many instances wait for one, and all leave when it is done.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { poll } from '../../__test__/helpers/poll.js'
import { lockWatched } from '../../__test__/helpers/watching.js'
import { commandsDuring, holdLock, total } from '../server.js'
import { trivial } from '../stage.js'
import { work } from '../workers.js'
import { add, roundsOf, row } from './rounds.js'

/** @import { Place, ToolId } from '../tools.js' */
/** @import { Context, Measurement, Row } from '../measurement.d.ts' */

const usualCrowd = { processes: 5, runs: 10, watchedMs: 5000 }
const quickCrowd = { processes: 2, runs: 2, watchedMs: 1000 }
const everyone = usualCrowd.processes * usualCrowd.runs

/** @type {Measurement} */
export const crowd = {
  name: 'crowd',
  title: `${everyone} that wait`,
  about: `${everyone} runs in ${usualCrowd.processes} processes wait for a lock that somebody else holds, then it is released: the first applies one migration, the others find nothing left to do. Commands are counted as above, the migration's own among them: over ${usualCrowd.watchedMs / 1000} s of waiting, and from the release to the last return. migrate-mongo can't wait.`,
  run,
}

/** @param {Context} context @returns {Promise<Row[]>} */
async function run(context) {
  const { replicaSet, standalone } = context.stage.uris
  const [onSet, alone] = [rowsOf('replica-set', 'replica set'), rowsOf('standalone', 'standalone')]
  for (let round = roundsOf(context, 2, 1); round > 0; round -= 1) {
    await take(context, onSet, 'ours', replicaSet)
    await take(context, onSet, 'oneX', replicaSet)
    await take(context, alone, 'ours', standalone)
    await take(context, alone, 'oneX', standalone)
  }
  return [...Object.values(onSet), ...Object.values(alone)]
}

/** @param {string} id @param {string} where */
const rowsOf = (id, where) => ({
  waiting: row(`${id}-waiting`, `${where}: each in a second of waiting`, 'commands'),
  leaving: row(`${id}-leaving`, `${where}: each from the release on`, 'commands'),
  last: row(`${id}-last`, `${where}: release to the last return`, 'ms'),
})

/**
 * @param {Context} context
 * @param {ReturnType<typeof rowsOf>} rows
 * @param {ToolId} tool
 * @param {string} uri
 */
async function take({ stage, quick }, rows, tool, uri) {
  const { processes, runs, watchedMs } = quick ? quickCrowd : usualCrowd
  const count = processes * runs
  const place = stage.place(await stage.app({ '1.js': trivial }), uri)
  const db = stage.client(uri).db(place.dbName)
  const release = await holdLock(db)
  const gathered = gather({ tool, place, processes, runs })
  await Promise.race([
    poll(() => gathered.waiting() >= count, { what: `${count} wait`, deadlineMs: 60_000 }),
    gathered.ended,
  ])
  if (tool === 'ours' && uri === stage.uris.replicaSet) {
    await lockWatched(/** @type {any} */ ({ db, name: place.dbName }), count)
  }

  const asked = await commandsDuring(stage.client(uri), () => delay(watchedMs))
  let span = 0
  const leaving = await commandsDuring(stage.client(uri), async () => {
    await release()
    const released = performance.timeOrigin + performance.now()
    const returned = (await gathered.ended).flat()
    const applied = returned.reduce((sum, each) => sum + each.returned, 0)
    if (applied !== 1) throw new Error(`${tool}: ${applied} were applied instead of one`)
    span = Math.max(...returned.map(({ at }) => at)) - released
  })
  add(rows.waiting, tool, total(asked) / count / (watchedMs / 1000))
  add(rows.leaving, tool, total(leaving) / count)
  add(rows.last, tool, span)
}

/**
 * @param {{ tool: ToolId, place: Place, processes: number, runs: number }} crowd
 */
function gather({ tool, place, processes, runs }) {
  let waiting = 0
  const onWaiting = () => {
    waiting += 1
  }
  const job = { tool, place, runs, how: { wait: true } }
  const ended = Promise.all(Array.from({ length: processes }, () => work(job, { onWaiting })))
  return { waiting: () => waiting, ended }
}
