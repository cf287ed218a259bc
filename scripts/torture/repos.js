/**
 * The repositories whose migrations a torture runs: each a folder and a namespace. Before every run
 * some migrations are added, so that there is always something to do; every minute a repository
 * starts again empty, under another namespace, so that no run has a thousand files to read.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { now } from './history.js'

/** @typedef {import('./random.js').Random} Random */

/**
 * @typedef {object} Repo
 * @property {string} name also its namespace
 * @property {string} folder where `mmk` runs
 * @property {string} migrationsDir
 */

/** Runs without the lock have one for themselves, where they contend for the same entries. */
const repos = { locked: ['shop', 'billing', 'search'], unlocked: ['unlocked'], old: ['old'] }
/** @type {Record<'unlocked' | 'old', Partial<Record<import('./profile.js').BodyKind, number>>>} */
const simple = { unlocked: { plain: 4, throw: 1 }, old: { old: 1 } }
const epochMs = 60_000

/**
 * @param {string} home of the torture
 * @param {Random} random
 * @param {import('./profile.js').Profile} profile
 * @param {keyof typeof repos} whose
 * @returns {Repo}
 */
export function prepareRepo(home, random, profile, whose) {
  const epoch = Math.floor(now() / epochMs)
  const name = `${random.pick(repos[whose])}-${epoch}`
  const folder = join(home, 'repos', name)
  const migrationsDir = join(folder, 'migrations')
  mkdirSync(migrationsDir, { recursive: true })
  place(folder, 'package.json', '{ "type": "module" }')
  place(folder, 'mmk.config.js', configSource(name))
  const count = random.integer(1, 2)
  for (let index = 0; index < count; index += 1) {
    const kind = random.weighted(whose === 'locked' ? profile.bodies : simple[whose])
    place(migrationsDir, `${stamp()}-${process.pid}-${index}-${kind}.js`, migrationSource(kind))
  }
  return { name, folder, migrationsDir }
}

/** Nobody sees half a file. @param {string} folder @param {string} name @param {string} text */
function place(folder, name, text) {
  const draft = join(folder, `${name}.${process.pid}.draft`)
  writeFileSync(draft, text)
  renameSync(draft, join(folder, name))
}

/** Sorts in the order of time, whoever writes it. */
const stamp = () => String(Math.round(now() * 1000)).padStart(16, '0')

/** @param {string} module */
const here = (module) => JSON.stringify(new URL(module, import.meta.url).href)

/** For the command line. @param {string} repo */
const configSource = (repo) => `import { beginRound, onEvent } from ${here('./watch.js')}
beginRound({ noLock: false, repo: '${repo}', ownClient: false })
export default { onEvent, namespace: '${repo}', outOfOrder: 'allow' }
`

/** @param {import('./profile.js').BodyKind} kind */
const migrationSource = (kind) => `import { body } from ${here('./effects.js')}
export const useTransaction = ${kind === 'transaction'}
export const up = body('${kind}')
export function down() {}
`
