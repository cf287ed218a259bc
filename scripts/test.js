/**
 * `npm test`: every check of this repository, from whatever state the clone is in.
 *
 *   npm test -- --only rust                 formatting, lints and tests of the core
 *   npm test -- --only js                   types, lint and all tests of __test__
 *   npm test -- --only __test__/cli <…>     the tests in these files or folders
 *
 * A failing step does not keep the later ones from running, but it fails the whole.
 */
import { readdir, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { cargo } from './cargo.js'
import { startMongod } from './mongod.js'
import { main, neutralEnv, root, run, ScriptError } from './process.js'
import { setup } from './setup.js'

/** @typedef {{ name: string, run: () => Promise<number> }} Step */

/** No file takes nearly as long; a hanging one must not hang the whole. */
const fileDeadlineMs = 900_000
const core = '--no-default-features'
const clippy = ['clippy', '--all-targets']
const denyWarnings = ['--', '-D', 'warnings']

/** @type {Step[]} */
const rustSteps = [
  { name: 'cargo fmt', run: () => cargo(['fmt', '--check']) },
  { name: 'clippy (core)', run: () => cargo([...clippy, core, ...denyWarnings]) },
  { name: 'clippy (binding)', run: () => cargo([...clippy, ...denyWarnings]) },
  { name: 'cargo test', run: () => cargo(['test', core]) },
]

/** @type {Step[]} */
const jsChecks = [
  { name: 'types', run: () => tool('typescript/bin/tsc', ['-p', 'tsconfig.json']) },
  { name: 'lint', run: () => tool('@biomejs/biome/bin/biome', ['check', '--error-on-warnings']) },
]

/** @param {readonly string[]} only @returns {Promise<Step[]>} */
async function chosen(only) {
  if (only[0] === 'rust') return rustSteps
  const paths = only.length === 0 || only[0] === 'js' ? ['__test__'] : only
  const files = (await Promise.all(paths.map(testFiles))).flat()
  if (files.length === 0) throw new ScriptError(`No *.test.js in ${paths.join(', ')}`)
  const tests = { name: 'node tests', run: () => nodeTests(files) }
  if (only.length === 0) return [...rustSteps, ...jsChecks, tests]
  return only[0] === 'js' ? [...jsChecks, tests] : [tests]
}

/**
 * @param {string} script path in node_modules
 * @param {readonly string[]} args
 */
const tool = (script, args) => run(process.execPath, [join(root, 'node_modules', script), ...args])

/**
 * Run tests against one replica set and one standalone server, which they share.
 *
 * @param {readonly string[]} files from the repository's root
 */
async function nodeTests(files) {
  const [replicaSet, standalone] = await Promise.all([startMongod(), startMongod({ members: 0 })])
  try {
    console.log(`MongoDB ${replicaSet.version}: a replica set of one member, and a standalone`)
    // One file at a time: many of them watch clocks, or start more processes than there are cores.
    const options = ['--test', '--test-concurrency=1', '--test-reporter=spec']
    options.push(`--test-timeout=${fileDeadlineMs}`)
    return await run(process.execPath, [...options, ...files], {
      env: {
        ...neutralEnv(),
        REPLICA_SET_URI: replicaSet.uri,
        STANDALONE_URI: standalone.uri,
      },
    })
  } finally {
    await Promise.all([replicaSet.stop(), standalone.stop()])
  }
}

/** @param {string} path @returns {Promise<string[]>} the test files in it, in order */
async function testFiles(path) {
  const absolute = join(root, path)
  const found = await stat(absolute).catch(() => null)
  if (!found) throw new ScriptError(`There is no ${path}`)
  if (found.isFile()) return [path]
  const names = await readdir(absolute, { recursive: true })
  return names
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => relative(root, join(absolute, name)))
    .sort()
}

/** @param {Step} step */
async function timed(step) {
  console.log(`\n▸ ${step.name}`)
  const start = performance.now()
  const code = await step.run()
  return { name: step.name, code, seconds: Math.round((performance.now() - start) / 1000) }
}

main(async () => {
  const flag = process.argv.indexOf('--only')
  const only = flag < 0 ? [] : process.argv.slice(flag + 1)
  const steps = await chosen(only)
  await setup()
  const results = []
  for (const step of steps) results.push(await timed(step))

  const list = results.map(({ name, code, seconds }) => `${code ? '✖' : '✔'} ${name} ${seconds}s`)
  const failed = results.filter(({ code }) => code !== 0)
  console.log(`\n${list.join(' · ')}`)
  console.log(`steps: ${results.length - failed.length} passed, ${failed.length} failed`)
  return failed.length === 0 ? 0 : 1
})
