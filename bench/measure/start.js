/**
 * What people and CI type most, as whole processes.
 */
import { measured } from '../processes.js'
import { alike, applied, trivial } from '../stage.js'
import { everyTool, placeEnv } from '../tools.js'
import { add, roundsOf, row } from './rounds.js'

/** @import { Column, Context, Measurement, Row } from '../measurement.d.ts' */

const files = 200

const commands = [
  { id: 'version', work: '`--version`', args: ['--version'] },
  { id: 'help', work: '`--help`', args: ['--help'] },
  { id: 'status', work: '`status`', args: ['status'] },
  { id: 'up', work: '`up`, nothing pending', args: ['up'] },
]

/** @type {Measurement} */
export const start = {
  name: 'start',
  title: 'Whole processes',
  about: `With ${files} migrations, all applied, from the start of the process to its end. The peak of the resident memory and the processor time (user and system) are the process's own. \`node -e 0\` is what Node itself costs: the same for every tool, and so the limit of every ratio here.`,
  run,
}

/** @param {Context} context @returns {Promise<Row[]>} */
async function run(context) {
  const { stage } = context
  const app = await stage.app(alike(context.quick ? 5 : files, trivial))
  const envs = new Map()
  for (const tool of everyTool) envs.set(tool.id, placeEnv(await applied(stage, app, tool)))
  const base = rowsOf({ id: 'node', work: '`node -e 0`' })
  const rows = commands.map((command) => ({ ...command, ...rowsOf(command) }))

  for (let round = roundsOf(context, 15, 2); round > 0; round -= 1) {
    await take(base, 'node', ['-e', '0'], {})
    for (const each of rows) {
      for (const { id, cli } of everyTool) {
        const options = { cwd: app.folder, env: envs.get(id) }
        await take(each, id, [cli, ...each.args], options)
      }
    }
  }
  return [base, ...rows].flatMap(({ wall, cpu, rss }) => [wall, cpu, rss])
}

/** @param {{ id: string, work: string }} command */
const rowsOf = ({ id, work }) => ({
  wall: row(`${id}-wall`, `${work}: wall`, 'ms'),
  cpu: row(`${id}-cpu`, `${work}: processor`, 'ms'),
  rss: row(`${id}-rss`, `${work}: peak memory`, 'MB'),
})

/**
 * @param {{ wall: Row, cpu: Row, rss: Row }} rows
 * @param {Column} column
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} options
 */
async function take({ wall, cpu, rss }, column, args, options) {
  const cost = await measured(args, options)
  add(wall, column, cost.wallMs)
  add(cpu, column, cost.cpuMs)
  add(rss, column, cost.rssMb)
}
