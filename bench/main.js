/**
 * `npm run bench`: every measurement, on servers and an addon of its own, and the report.
 *
 *   npm run bench                                       all of it, into docs/benchmarks.md
 *   npm run bench -- --only boot --only start           these alone, printed only
 *   npm run bench -- --quick                            a small run of everything, printed only
 *   npm run bench -- --rounds 3 --out /tmp/figures      other rounds, another folder
 *
 * Promises that what is measured is the release build of the present sources. Ends with 1 when the
 * addon is over its budget; a want that is not met is told, and fails nothing.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from '../scripts/build.js'
import { startMongod } from '../scripts/mongod.js'
import { main, root, ScriptError } from '../scripts/process.js'
import { setup } from '../scripts/setup.js'
import { ADDON_BUDGET, addonFile } from './measure/size.js'
import { measurements } from './measurements.js'
import { loadShare, machine, noiseOf, pulse } from './noise.js'
import { growthPlots } from './plot.js'
import { openStage } from './stage.js'
import { document, section, wantsSection } from './table.js'
import { tools } from './tools.js'
import { judge } from './wants.js'

/** @import { Context, Measurement, Result } from './measurement.d.ts' */

const labels = {
  ours: tools.ours.label,
  oneX: tools.oneX.label,
  migrateMongo: tools.migrateMongo.label,
}

function parse() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      out: { type: 'string' },
    },
  })
  const known = measurements.map(({ name }) => name)
  const unknown = values.only?.find((name) => !known.includes(name))
  if (unknown) throw new ScriptError(`There is no ${unknown}: ${known.join(', ')}`)
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
    throw new ScriptError(`--rounds ${values.rounds} is no number of rounds`)
  }
  const chosen = measurements.filter(({ name }) => values.only?.includes(name) ?? true)
  // A part of the figures, or poor ones, must not replace the published ones by accident.
  const published = chosen.length === measurements.length && !values.quick && !rounds
  const out = values.out ?? (published ? join(root, 'docs') : null)
  return { chosen, rounds, quick: values.quick, out }
}

/**
 * @param {Context} context
 * @param {readonly Measurement[]} chosen
 */
async function measure(context, chosen) {
  /** @type {Result[]} */
  const results = []
  const pulses = []
  for (const { run, ...about } of chosen) {
    pulses.push(await pulse())
    const began = performance.now()
    const rows = await run(context)
    const seconds = Math.round((performance.now() - began) / 1000)
    results.push({ ...about, seconds, rows })
    console.log(`\n${section({ ...about, seconds, rows }, labels)}\n(${seconds} s)`)
  }
  pulses.push(await pulse())
  return { results, pulses }
}

/**
 * @param {string} out
 * @param {import('./table.js').Facts} facts
 * @param {readonly Result[]} results
 */
async function write(out, facts, results) {
  const folder = join(out, 'benchmarks')
  await mkdir(folder, { recursive: true })
  const grown = results.find(({ name }) => name === 'boot')
  const plots = grown ? growthPlots(grown, labels) : []
  for (const { name, svg } of plots) await writeFile(join(folder, `${name}.svg`), `${svg}\n`)
  const pictures = plots.map(({ name, title }) => ({ file: `benchmarks/${name}.svg`, title }))
  const text = document({ ...facts, plots: pictures }, judge(results), results, labels)
  await writeFile(join(out, 'benchmarks.md'), text)
  const raw = JSON.stringify({ ...facts, plots: undefined, results }, shorter, 2)
  await writeFile(join(folder, 'results.json'), `${raw}\n`)
  console.log(`Written: ${join(out, 'benchmarks.md')}, and benchmarks/ beside it`)
}

/** Microseconds are finer than any of the figures. @param {string} _ @param {unknown} value */
const shorter = (_, value) => (typeof value === 'number' ? Number(value.toFixed(3)) : value)

main(async () => {
  const { chosen, rounds, quick, out } = parse()
  // Before a build of ours, which is over when the measurements begin.
  const load = loadShare()
  await setup()
  // Also when an addon is there: it may be a debug build. Cargo knows whether there is anything to do.
  if ((await build()) !== 0) throw new ScriptError('The addon could not be built')
  const [replicaSet, alone] = await Promise.all([startMongod(), startMongod({ members: 0 })])
  const stage = await openStage({ replicaSet: replicaSet.uri, standalone: alone.uri })
  try {
    const { results, pulses } = await measure({ stage, quick, rounds }, chosen)
    const noise = [...(quick ? ['a small run'] : []), ...noiseOf(pulses, load)]
    console.log(`\n${wantsSection(judge(results))}`)
    for (const each of noise) console.log(`⚠ A noisy run: ${each}`)
    const versions = `Node ${process.versions.node}, MongoDB ${replicaSet.version}`
    const date = new Date().toISOString().slice(0, 10)
    const facts = { date, machine: machine(), versions, noise, plots: [] }
    if (out) await write(out, facts, results)
  } finally {
    await stage.close()
    await Promise.all([replicaSet.stop(), alone.stop()])
  }
  const { length } = await addonFile()
  if (length <= ADDON_BUDGET) return 0
  console.error(`✖ The addon has ${length} bytes, its budget is ${ADDON_BUDGET}`)
  return 1
})
