/**
 * What an installation puts on the disk, and the addon's budget.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { capture, root, ScriptError } from '../../scripts/process.js'
import { tools } from '../tools.js'
import { add, row } from './rounds.js'

/** @import { Measurement, Row } from '../measurement.d.ts' */

/**
 * Bytes. The addon for Linux on x64 had 11.6 million when this was set, most of them the driver, TLS
 * and the three compressors: what is left is room for our own code, not for another library.
 */
export const ADDON_BUDGET = 12_500_000

/** @type {Measurement} */
export const size = {
  name: 'size',
  title: 'Installed size',
  about:
    "Of ours, the files that are packed, and the binary for this platform; of the others, their installed folders. Dependencies, all the way down, are apart, and without the driver, which is the user's own. Packed: what is downloaded for our two packages; how the others are packed can't be seen from an installation.",
  run,
}

/** @returns {Promise<Row[]>} */
async function run() {
  const rows = {
    own: row('own', 'the package itself', 'MB'),
    addon: row('addon', 'of that, the addon', 'MB'),
    dependencies: row('dependencies', 'its dependencies', 'MB'),
    packed: row('packed', 'packed', 'MB'),
  }
  const [main, addon] = [await packedMain(), await addonFile()]
  add(rows.own, 'ours', mb(main.unpackedSize + addon.length))
  add(rows.addon, 'ours', mb(addon.length))
  add(rows.packed, 'ours', mb(main.size + (await promisify(gzip)(addon)).length))
  for (const { id, folder } of Object.values(tools)) {
    if (id !== 'ours') add(rows.own, id, mb(await folderSize(folder)))
    add(rows.dependencies, id, mb(await dependenciesSize(folder)))
  }
  return Object.values(rows)
}

/** @param {number} bytes */
const mb = (bytes) => bytes / 1e6

/** @returns {Promise<{ size: number, unpackedSize: number }>} of the main package, in bytes */
async function packedMain() {
  const { code, stdout, stderr } = await capture('npm', ['pack', '--dry-run', '--json'], {
    shell: process.platform === 'win32',
  })
  if (code !== 0) throw new ScriptError(`\`npm pack\` failed:\n${stderr}`)
  return JSON.parse(stdout)[0]
}

/** @returns {Promise<Buffer>} */
export async function addonFile() {
  const native = join(root, 'lib', 'native')
  const name = (await readdir(native)).find((each) => each.endsWith('.node'))
  if (!name) throw new ScriptError('There is no addon: npm run build')
  return readFile(join(native, name))
}

/** @param {string} folder of a package; what is installed in it belongs to its dependencies */
async function folderSize(folder) {
  const names = await readdir(folder, { recursive: true })
  const own = names.filter((name) => !name.split(/[\\/]/).includes('node_modules'))
  const stats = await Promise.all(own.map((name) => stat(join(folder, name))))
  return stats.reduce((sum, each) => sum + (each.isFile() ? each.size : 0), 0)
}

/** @param {string} folder of the package whose dependencies are meant */
async function dependenciesSize(folder) {
  const found = new Set()
  const open = [folder]
  for (let next = open.pop(); next; next = open.pop()) {
    const manifest = JSON.parse(await readFile(join(next, 'package.json'), 'utf8'))
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      const dependency = await resolved(name, next)
      if (!found.has(dependency)) open.push(dependency)
      found.add(dependency)
    }
  }
  const sizes = await Promise.all([...found].map(folderSize))
  return sizes.reduce((sum, each) => sum + each, 0)
}

/**
 * The folder of a dependency, nested or hoisted. By looking, because a package's `exports` may hide
 * its own package.json.
 *
 * @param {string} name
 * @param {string} from
 */
async function resolved(name, from) {
  // With a path behind it, so that a package called like a module of Node's is looked for too.
  const paths = createRequire(join(from, 'package.json')).resolve.paths(`${name}/package.json`)
  for (const path of paths ?? []) {
    const manifest = join(path, name, 'package.json')
    if (await stat(manifest).catch(() => null)) return dirname(manifest)
  }
  throw new ScriptError(`${name} is not installed, which ${from} depends on`)
}
