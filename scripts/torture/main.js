/**
 * `npm run torture`: hours of faults, if you like.
 *
 *   npm run torture -- --minutes 30 --seed 7      what the lock must withstand
 *   npm run torture -- --mongod 4.4               on another release of MongoDB: 4.4, 5.0, 6.0
 *   npm run torture -- --refuse-pipelines         on servers that take no update pipelines
 *   npm run torture -- --workers 8
 *   npm run torture -- --mutant no-fence          a fault planted in the core: must be caught
 *   npm run torture -- --mutant all --seeds 10    all of them, in at least nine of ten seeds each
 *
 * Ends with 0 if nothing was violated, or every mutant was caught. What could not be done on this
 * machine is listed, and nothing of it counts as passed.
 */
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { main, ScriptError } from '../process.js'
import { setup } from '../setup.js'
import { buildMutants } from './mutants.js'
import { withProduct } from './product.js'
import { mutants } from './profile.js'
import { reportLines } from './report.js'
import { torture } from './torture.js'

const options = /** @type {const} */ ({
  minutes: { type: 'string', default: '2' },
  seed: { type: 'string' },
  seeds: { type: 'string', default: '1' },
  mongod: { type: 'string' },
  'refuse-pipelines': { type: 'boolean', default: false },
  workers: { type: 'string', default: '5' },
  mutant: { type: 'string' },
})

/** Of ten seeds: a torture that lets a mutant live is not finished. */
const mustCatch = 0.9
/** Enough to see that a lock is never taken again; what else there is to see is seen before. */
const calmSeconds = 16

async function cli() {
  const { values } = parseArgs({ options })
  const first = values.seed ?? String(Math.floor(Math.random() * 1e6))
  const count = whole(values.seeds, 'seeds')
  const seeds = Array.from({ length: count }, (_, index) => (index ? `${first}.${index}` : first))
  const names = mutantsNamed(values.mutant)
  const common = {
    refusePipelines: values['refuse-pipelines'],
    seconds: number(values.minutes, 'minutes') * 60,
    workers: whole(values.workers, 'workers'),
    ...(values.mongod ? { release: values.mongod } : {}),
  }
  await setup({ addon: false })
  return withProduct(async (product) => {
    let sound = true
    for (const seed of names.length > 0 ? [] : seeds) {
      sound = (await one({ ...common, product, seed })) && sound
    }
    for (const mutant of names)
      sound = (await hunted(mutant, { ...common, product }, seeds)) && sound
    return sound ? 0 : 1
  })
}

/** @param {import('./torture.js').Options} options */
async function one(options) {
  const report = await torture(options)
  console.log(reportLines(options, report).join('\n'))
  return report.folder === null
}

/**
 * @param {string} mutant
 * @param {Omit<import('./torture.js').Options, 'seed'>} common
 * @param {readonly string[]} seeds
 */
async function hunted(mutant, common, seeds) {
  const { caughtBy = [] } = mutants[mutant] ?? {}
  const env = { NAPI_RS_NATIVE_LIBRARY_PATH: await buildMutants(), MMK_MUTANT: mutant }
  let caught = 0
  for (const seed of seeds) {
    const { findings, folder } = await torture({ ...common, seed, mutant, env, calmSeconds })
    const found = findings.filter(({ violations }) => violations.length > 0)
    const by = found.map(({ id }) => id)
    const seen = by.some((id) => caughtBy.includes(id))
    caught += Number(seen)
    if (seen && folder) await rm(dirname(folder), { recursive: true })
    console.log(`${seen ? '✔' : '✖'} ${mutant}, seed ${seed}: ${by.join(' ') || 'not caught'}`)
    // What the mutant is not known for may be a fault of its own.
    for (const { id, violations } of found) {
      if (!caughtBy.includes(id)) console.log(`  ${id}: ${violations[0]}`)
    }
  }
  console.log(`${mutant}: caught in ${caught} of ${seeds.length}`)
  return caught >= mustCatch * seeds.length
}

/** @param {string | undefined} name @returns {string[]} */
function mutantsNamed(name) {
  if (name === undefined) return []
  if (name === 'all') return Object.keys(mutants)
  if (Object.hasOwn(mutants, name)) return [name]
  throw new ScriptError(`There is no mutant "${name}": ${Object.keys(mutants).join(', ')}`)
}

/** @param {string} text @param {string} name */
function number(text, name) {
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new ScriptError(`--${name} takes a number above 0, not "${text}"`)
}

/** @param {string} text @param {string} name */
function whole(text, name) {
  const value = number(text, name)
  if (Number.isInteger(value)) return value
  throw new ScriptError(`--${name} takes a whole number, not "${text}"`)
}

main(cli)
