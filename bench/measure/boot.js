/**
 * An app that boots with nothing to do, and how that grows with the history.
 */
import { measured } from '../processes.js'
import { alike, applied, trivial } from '../stage.js'
import { everyTool, placeEnv } from '../tools.js'
import { workOnce } from '../workers.js'
import { add, roundsOf, row } from './rounds.js'

/** @import { App } from '../stage.js' */
/** @import { Place, ToolId } from '../tools.js' */
/** @import { Context, Measurement, Row } from '../measurement.d.ts' */

export const sizes = [10, 200, 2000, 10_000]
/** Sizes at which the whole process is looked at too. */
const wholes = [10, 2000]

/** @type {Measurement} */
export const boot = {
  name: 'boot',
  title: 'Boot with nothing pending',
  about:
    'In an app whose process has loaded the driver already: from the import of the tool to the end of its run, in a process of its own for each sample. Memory is the peak of that process, the driver included. Files lie in the cache of the file system.',
  run,
}

/** @param {Context} context @returns {Promise<Row[]>} */
async function run(context) {
  const rows = []
  const quickSizes = [10]
  /** @type {Size[]} */
  const all = []
  for (const size of context.quick ? quickSizes : sizes) all.push(await sizeOf(context, size))
  for (let round = roundsOf(context, 7, 2); round > 0; round -= 1) {
    for (const each of all) await takeAll(each)
  }
  for (const { time, cpu, memory } of all) rows.push(time, cpu, memory)
  return [...rows, ...all.flatMap(({ whole }) => whole ?? [])]
}

/**
 * @typedef {{ app: App, places: Map<ToolId, Place>, time: Row, cpu: Row, memory: Row, whole: Row | null }} Size
 *
 * @param {Context} context
 * @param {number} size
 * @returns {Promise<Size>}
 */
async function sizeOf({ stage }, size) {
  const app = await stage.app(alike(size, trivial))
  const places = new Map()
  for (const tool of everyTool) places.set(tool.id, await applied(stage, app, tool))
  const many = `${size.toLocaleString('en')} applied`
  return {
    app,
    places,
    time: row(`time-${size}`, many, 'ms'),
    cpu: row(`cpu-${size}`, `${many}: processor`, 'ms'),
    memory: row(`memory-${size}`, `${many}: peak memory`, 'MB'),
    whole: wholes.includes(size)
      ? row(`whole-${size}`, `${many}: \`up\` as a whole process`, 'ms')
      : null,
  }
}

/** @param {Size} size */
async function takeAll({ app, places, time, cpu, memory, whole }) {
  for (const { id, cli } of everyTool) {
    const place = /** @type {Place} */ (places.get(id))
    const { returned, tookMs, cpuMs, rssMb } = await workOnce({ tool: id, place })
    if (returned !== 0) throw new Error(`${id} applied ${returned} migrations at a boot`)
    add(time, id, tookMs)
    add(cpu, id, cpuMs)
    add(memory, id, rssMb)
    if (!whole) continue
    const options = { cwd: app.folder, env: placeEnv(place) }
    add(whole, id, (await measured([cli, 'up'], options)).wallMs)
  }
}
