/**
 * `node bench/features.js [<feature> …]`: what each cargo feature of the driver costs the addon. Built
 * without it, in a copy of the sources, and compared with the build that has them all. Not part of
 * `npm run bench`: every feature is a release build, a minute or two.
 */
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cargo } from '../scripts/cargo.js'
import { isMain, main, root, ScriptError } from '../scripts/process.js'
import { figure, markdownTable } from './table.js'

const sources = ['src', 'tests', 'build.rs', 'Cargo.toml', 'Cargo.lock']
/** The driver's list of features in our manifest. */
const list = /^mongodb = \{[^[]*\[([^\]]*)\]/m
/** Not a choice: the driver doesn't build without one of them. */
const fixed = /^(compat|bson)-/

/** @param {string} manifest @returns {string[]} */
export function featuresOf(manifest) {
  const found = list.exec(manifest)?.[1]?.match(/[\w-]+/g)
  if (!found) throw new ScriptError('Cargo.toml has no list of features of `mongodb`')
  return found.filter((name) => !fixed.test(name))
}

/** @param {string} manifest @param {string} feature */
export const without = (manifest, feature) =>
  manifest.replace(list, (all) => all.replace(new RegExp(`\\s*"${feature}",?`), ''))

/**
 * @param {string} folder with a copy of the sources
 * @returns {Promise<number | null>} bytes of the addon; `null` when it can't be built
 */
async function addonBytes(folder) {
  const target = join(folder, 'target')
  const manifest = join(folder, 'Cargo.toml')
  const build = ['build', '--release', '--lib', '--quiet', '--manifest-path', manifest]
  if ((await cargo(build, { CARGO_TARGET_DIR: target })) !== 0) return null
  const built = (await readdir(target, { recursive: true })).find((path) => {
    return /^[^/\\]+[/\\]release[/\\](lib)?mongo_migrate_kit\.(so|dylib|dll)$/.test(path)
  })
  if (!built) throw new ScriptError('cargo has built no library')
  return (await stat(join(target, built))).size
}

/** @param {readonly string[]} asked */
async function features(asked) {
  const manifest = await readFile(join(root, 'Cargo.toml'), 'utf8')
  const known = featuresOf(manifest)
  const unknown = asked.find((name) => !known.includes(name))
  if (unknown) throw new ScriptError(`There is no ${unknown}: ${known.join(', ')}`)
  const folder = await mkdtemp(join(tmpdir(), 'mmk-features-'))
  try {
    for (const name of sources) {
      await cp(join(root, name), join(folder, name), { recursive: true })
    }
    const whole = await addonBytes(folder)
    if (whole === null) throw new ScriptError('The addon could not be built')
    const rows = [['all features', figure(whole / 1e6), '']]
    for (const feature of asked.length > 0 ? asked : known) {
      await writeFile(join(folder, 'Cargo.toml'), without(manifest, feature))
      const bytes = await addonBytes(folder)
      const saved = bytes === null ? "can't be built" : figure((whole - bytes) / 1e6)
      rows.push([`without ${feature}`, bytes === null ? '–' : figure(bytes / 1e6), saved])
    }
    console.log(markdownTable([['addon', 'MB', 'less, MB'], ...rows]))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

if (isMain(import.meta.url)) main(() => features(process.argv.slice(2)))
