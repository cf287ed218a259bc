/**
 * `npm test`: every check of this repository, from whatever state the clone is in.
 *
 *   npm test -- --only rust                 formatting, lints and tests of the core
 *   npm test -- --only js                   types, lint and all tests of __test__
 *   npm test -- --only __test__/cli <…>     the tests in these files or folders
 *
 * A failing step does not keep the later ones from running, but it fails the whole.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { cargo } from './cargo.js'
import { ensureFaketime } from './faketime.js'
import { startMongod } from './mongod.js'
import { main, neutralEnv, root, run, ScriptError } from './process.js'
import { currentAddon, setup } from './setup.js'

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {(servers: Servers) => Promise<number>} run resolves to the exit code
 *
 * @typedef {{ MMK_TEST_MONGO_URI: string, MMK_TEST_STANDALONE_URI: string }} Servers
 *   a replica set of one member and a standalone, for the environment of the tests
 */

/** No file takes nearly as long; a hanging one must not hang the whole. */
const fileDeadlineMs = 900_000
/** Their tests mostly wait (for a lease to end, a process to die), so several files share the cores. */
const patientFolders = ['faults', 'crash'].map((name) => join('__test__', name) + sep)
const patientFiles = 3
/** Fail points and left-over operations are the server's: who works with them has it for himself. */
const wantsServerAlone = /helpers\/(?:fail-point|faulty-run|attempts|orphans)\.js/
const core = '--no-default-features'
const clippy = ['clippy', '--all-targets']
const denyWarnings = ['--', '-D', 'warnings']

/** @type {Step[]} */
const rustSteps = [
  { name: 'cargo fmt', run: () => cargo(['fmt', '--check']) },
  { name: 'clippy (core)', run: () => cargo([...clippy, core, ...denyWarnings]) },
  { name: 'clippy (binding)', run: () => cargo([...clippy, ...denyWarnings]) },
  { name: 'cargo test', run: (servers) => cargo(['test', core], servers) },
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
  const tests = await nodeSteps(files)
  if (only.length === 0) return [...rustSteps, addonStep(), ...jsChecks, ...tests]
  return only[0] === 'js' ? [addonStep(), ...jsChecks, ...tests] : [addonStep(), ...tests]
}

/** The build begins at once, beside the steps of the core: its longest part keeps only one core busy. */
function addonStep() {
  const building = currentAddon()
  return { name: 'addon', run: () => building }
}

/** @param {readonly string[]} files @returns {Promise<Step[]>} */
async function nodeSteps(files) {
  const kinds = await Promise.all(files.map(isPatient))
  const patient = files.filter((_, index) => kinds[index])
  // One file at a time: many of the others watch clocks, or start more processes than there are cores.
  const others = files.filter((_, index) => !kinds[index])
  const steps = [
    { name: 'node tests', files: others, atOnce: 1 },
    { name: 'node tests that wait', files: patient, atOnce: patientFiles },
  ]
  return steps
    .filter(({ files }) => files.length > 0)
    .map(({ name, files, atOnce }) => ({
      name,
      run: (servers) => nodeTests(files, atOnce, servers),
    }))
}

/** @param {string} file */
async function isPatient(file) {
  if (!patientFolders.some((folder) => file.startsWith(folder))) return false
  return !wantsServerAlone.test(await readFile(join(root, file), 'utf8'))
}

/**
 * @param {string} script path in node_modules
 * @param {readonly string[]} args
 */
const tool = (script, args) => run(process.execPath, [join(root, 'node_modules', script), ...args])

/**
 * @param {readonly string[]} files from the repository's root
 * @param {number} atOnce
 * @param {Servers} servers
 */
async function nodeTests(files, atOnce, servers) {
  const faketime = await ensureFaketime()
  const options = ['--test', `--test-concurrency=${atOnce}`, '--test-reporter=spec']
  options.push(`--test-timeout=${fileDeadlineMs}`)
  const env = {
    ...neutralEnv(),
    ...servers,
    ...(faketime && { MMK_TEST_FAKETIME: faketime }),
  }
  return run(process.execPath, [...options, ...files], { env })
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

/**
 * @param {readonly Step[]} steps
 * @returns {Promise<{ name: string, code: number, seconds: number }[]>}
 */
async function runSteps(steps) {
  const [replicaSet, standalone] = await Promise.all([startMongod(), startMongod({ members: 0 })])
  const servers = { MMK_TEST_MONGO_URI: replicaSet.uri, MMK_TEST_STANDALONE_URI: standalone.uri }
  const results = []
  try {
    console.log(`MongoDB ${replicaSet.version}: a replica set of one member, and a standalone`)
    for (const { name, run } of steps) {
      console.log(`\n▸ ${name}`)
      const start = performance.now()
      const code = await run(servers)
      results.push({ name, code, seconds: Math.round((performance.now() - start) / 1000) })
    }
  } finally {
    await Promise.all([replicaSet.stop(), standalone.stop()])
  }
  return results
}

main(async () => {
  const flag = process.argv.indexOf('--only')
  const only = flag < 0 ? [] : process.argv.slice(flag + 1)
  await setup({ addon: false, terminal: only[0] !== 'rust' })
  const steps = await chosen(only)
  const results = await runSteps(steps)

  const list = results.map(({ name, code, seconds }) => `${code ? '✖' : '✔'} ${name} ${seconds}s`)
  const failed = results.filter(({ code }) => code !== 0)
  console.log(`\n${list.join(' · ')}`)
  console.log(`steps: ${results.length - failed.length} passed, ${failed.length} failed`)
  return failed.length === 0 ? 0 : 1
})
