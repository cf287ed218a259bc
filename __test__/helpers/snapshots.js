/**
 * What `mmk` shows, kept as text beside the tests: on a pipe, and on a terminal. The same command also
 * runs with `--json=2`, whose document has to be as the published schema says.
 *
 * A text that has changed on purpose is written anew by `UPDATE_SNAPSHOTS=1 npm test -- --only
 * __test__/snapshots`; read the difference before you commit it.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { root } from '../../scripts/process.js'
import { freshDatabase } from './database.js'
import { normal } from './normal.js'
import { assertDocument } from './output-schema.js'
import { project } from './project.js'
import { mmkOnTerminal } from './terminal.js'

/**
 * @typedef {import('./project.js').Project & { database: import('./database.js').Database }} App
 *
 * @typedef {object} Case
 * @property {string[]} args the whole command line
 * @property {Record<string, string>} [migrations] file name to source
 * @property {(app: App) => Promise<unknown>} [given] what is so before
 * @property {NodeJS.ProcessEnv} [env]
 * @property {[shown: string, typed: string][]} [answers] on the terminal
 * @property {number[]} [columns] widths of the terminal, 100 if none is named
 * @property {string | null} [command] as the JSON document names it: the first argument if left out
 */

const updating = process.env.UPDATE_SNAPSHOTS === '1'

/**
 * @param {string} name of the file with the texts
 * @param {Record<string, Case>} cases by what they show
 */
export function snapshots(name, cases) {
  const file = join(root, '__test__', 'snapshots', `${name}.txt`)
  const stored = readFile(file, 'utf8').then(sections, () => new Map())
  /** @type {Map<string, string>} */
  const seen = new Map()
  for (const [what, one] of Object.entries(cases)) {
    test(`${name}: ${what}, on a pipe, on a terminal and as JSON`, async (t) => {
      const shown = await Promise.all([
        onPipe(t, one),
        ...(one.columns ?? [100]).map((columns) => onTerminal(t, one, columns)),
        asJson(t, one),
      ])
      for (const [surface, text] of shown.flat()) {
        const title = `${what}, ${surface}`
        seen.set(title, text)
        if (!updating) assert.equal(text, (await stored).get(title), `${title}: see ${file}`)
      }
    })
  }
  after(() => (updating ? writeFile(file, print(seen)) : undefined))
  test(`${name}: every text that is kept is looked at`, { skip: updating }, async () => {
    assert.deepEqual([...(await stored).keys()].sort(), [...seen.keys()].sort())
  })
}

/** @param {import('node:test').TestContext} t @param {Case} one @returns {Promise<App>} */
async function prepare(t, { migrations = {}, given, env = {} }) {
  const database = await freshDatabase(t)
  const created = await project(t, migrations, { env: { ...database.env, ...env } })
  const app = { ...created, database }
  await given?.(app)
  return app
}

/** @typedef {[surface: string, text: string][]} Shown */

/** @param {import('node:test').TestContext} t @param {Case} one @returns {Promise<Shown>} */
async function onPipe(t, one) {
  const app = await prepare(t, one)
  const { code, stdout, stderr } = await app.mmk(one.args).ended
  const text = `exit ${code}\n-- stdout\n${stdout}-- stderr\n${stderr}`
  return [['on a pipe', normal(text, app)]]
}

/**
 * @param {import('node:test').TestContext} t
 * @param {Case} one
 * @param {number} columns
 * @returns {Promise<Shown>}
 */
async function onTerminal(t, one, columns) {
  const app = await prepare(t, one)
  const { answers } = one
  const end = await mmkOnTerminal(one.args, { cwd: app.folder, env: app.env, columns, answers })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours take no room
  for (const line of end.text.replace(/\u001b\[\d*m/g, '').split('\n')) {
    if (/[│┌└├]/.test(line)) assert.ok(widthOf(line) <= columns, `${columns} columns: ${line}`)
  }
  const text = `exit ${end.code}\n-- terminal\n${end.text}`
  return [[`on a terminal of ${columns} columns`, normal(text, app)]]
}

/** @param {string} line */
const widthOf = (line) => [...line].length

/** @param {import('node:test').TestContext} t @param {Case} one @returns {Promise<Shown>} */
async function asJson(t, one) {
  const app = await prepare(t, one)
  const { stdout } = await app.mmk([...one.args, '--json=2']).ended
  assertDocument(JSON.parse(stdout), one.command === undefined ? one.args[0] : one.command)
  return []
}

/** @param {string} text */
function sections(text) {
  const parts = text.split(/^=== (.*)\n/m).slice(1)
  const found = new Map()
  for (let at = 0; at < parts.length; at += 2) found.set(parts[at], parts[at + 1].slice(0, -1))
  return found
}

/** @param {Map<string, string>} texts */
function print(texts) {
  return [...texts].map(([title, text]) => `=== ${title}\n${text}\n`).join('')
}
