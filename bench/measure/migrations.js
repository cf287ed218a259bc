/**
 * Many small migrations in one run, as a fresh database or a test suite has them.
 */
import { alike, transactional, trivial } from '../stage.js'
import { everyTool } from '../tools.js'
import { workOnce } from '../workers.js'
import { add, roundsOf, row } from './rounds.js'

/** @import { Context, Measurement, Row } from '../measurement.d.ts' */

const usualCount = 500

/** @type {Measurement} */
export const migrations = {
  name: 'migrations',
  title: 'Many pending migrations',
  about: `A run of ${usualCount} pending migrations of one insert each, divided by ${usualCount}: loading the file, the body and the record; the run's own beginning and end are spread over them. The driver is loaded beforehand. In a transaction: the tool's own, and for migrate-mongo, which has none, one that the body opens, with the record outside.`,
  run,
}

/** @param {Context} context @returns {Promise<Row[]>} */
async function run(context) {
  const { stage } = context
  const count = context.quick ? 10 : usualCount
  const kinds = [
    {
      app: await stage.app(alike(count, trivial)),
      row: row('plain', 'a migration', 'ms'),
    },
    {
      app: await stage.app(alike(count, transactional)),
      row: row('transactional', 'a migration in a transaction', 'ms'),
    },
  ]
  for (let round = roundsOf(context, 5, 1); round > 0; round -= 1) {
    for (const { app, row: of } of kinds) {
      for (const { id } of everyTool) {
        const { returned, tookMs } = await workOnce({ tool: id, place: stage.place(app) })
        if (returned !== count) throw new Error(`${id} applied ${returned} of ${count}`)
        add(of, id, tookMs / count)
      }
    }
  }
  return kinds.map((kind) => kind.row)
}
