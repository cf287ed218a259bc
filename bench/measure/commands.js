/**
 * What the server is asked, counted by the server: exact, whatever the machine is doing.
 */
import { commandsDuring, total } from '../server.js'
import { alike, applied, transactional, trivial } from '../stage.js'
import { everyTool } from '../tools.js'
import { workOnce } from '../workers.js'
import { add, row } from './rounds.js'

/** @import { Tool } from '../tools.js' */
/** @import { Context, Measurement, Row } from '../measurement.d.ts' */

const usualMany = 101
const quickMany = 3
/** The no-op boot costs the same with any number. */
const appliedCount = 10

/** @type {Measurement} */
export const commands = {
  name: 'commands',
  title: 'Commands to the server',
  about: `All commands on all databases, beside the bodies' own; handshakes, monitoring and \`endSessions\` are left out. A further migration: the difference between a run of ${usualMany} and a run of one. In a transaction the commit counts.`,
  run,
}

/** @param {Context} context @returns {Promise<Row[]>} */
async function run(context) {
  const many = context.quick ? quickMany : usualMany
  const rows = {
    boot: row('boot', 'boot with nothing pending', 'commands'),
    one: row('one', 'a run of one migration', 'commands'),
    plain: row('plain', 'each further migration', 'commands'),
    transactional: row('transactional', 'each further migration in a transaction', 'commands'),
  }
  for (const tool of everyTool) {
    const { id } = tool
    add(rows.boot, id, total(await bootCommands(context, tool)))
    const one = await runCommands(context, tool, 1, trivial)
    add(rows.one, id, total(one) - 1)
    rows.one.detail = { ...rows.one.detail, [id]: list(one) }
    /** @param {string} source @param {Record<string, number>} single */
    const further = async (source, single) => {
      const all = total(await runCommands(context, tool, many, source))
      // Without the one insert that is the body's own.
      return (all - total(single)) / (many - 1) - 1
    }
    add(rows.plain, id, await further(trivial, one))
    const single = await runCommands(context, tool, 1, transactional)
    add(rows.transactional, id, await further(transactional, single))
  }
  return Object.values(rows)
}

/** @param {Record<string, number>} counts @returns {string} the most frequent first */
function list(counts) {
  const sorted = Object.entries(counts).sort(([, a], [, b]) => b - a)
  return sorted.map(([name, count]) => `${count} ${name}`).join(', ')
}

/** @param {Context} context @param {Tool} tool */
async function bootCommands({ stage }, tool) {
  const place = await applied(stage, await stage.app(alike(appliedCount, trivial)), tool)
  return commandsDuring(stage.client(), () => workOnce({ tool: tool.id, place }))
}

/**
 * @param {Context} context
 * @param {Tool} tool
 * @param {number} count
 * @param {string} source
 */
async function runCommands({ stage }, { id }, count, source) {
  const app = await stage.app(alike(count, source))
  const place = stage.place(app)
  // In a new database a collection would be made inside the first transaction.
  await stage.client().db(place.dbName).createCollection('effects')
  return commandsDuring(stage.client(), () => workOnce({ tool: id, place }))
}
