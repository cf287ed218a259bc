/**
 * `npm run pack:local`: two tarballs in dist/ that install without a registry of ours, the main
 * package and the binary for this platform, in the very shape in which they would be published.
 *
 * The main package's manifest gains the optional dependencies on the platform packages only here:
 * in the working tree they would be packages that `npm ci` cannot find.
 */
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from './build.js'
import { isMain, main, npm, root, ScriptError } from './process.js'
import { setup } from './setup.js'

const dist = join(root, 'dist')
/** What only this working tree needs. */
const privateKeys = ['scripts', 'devDependencies', 'overrides', 'napi']

/**
 * @param {string} [folder] takes them, and nothing else is in it afterwards
 * @returns {Promise<Tarballs>}
 */
export async function pack(folder = dist) {
  if ((await build()) !== 0) throw new ScriptError('The addon could not be built')
  const stage = join(folder, 'stage')
  await rm(folder, { recursive: true, force: true })
  await mkdir(stage, { recursive: true })
  const manifest = await readManifest(root)
  const platform = await npmPack(await stagePlatform(stage, manifest), folder)
  const main = await npmPack(await stageMain(stage, manifest), folder)
  await rm(stage, { recursive: true })
  return { platform, main }
}

/** @param {string} stage @param {Manifest} manifest @returns {Promise<string>} the package's folder */
async function stagePlatform(stage, { napi, version }) {
  const native = join(root, 'lib', 'native')
  const binary = (await readdir(native)).find((name) => name.endsWith('.node'))
  const platform = binary?.split('.')[1] ?? ''
  const folder = join(root, 'npm', platform)
  const own = await readManifest(folder).catch(() => null)
  if (!binary || !own) {
    throw new ScriptError(
      `There is no npm/${platform}: add this platform to napi.targets in package.json and run ` +
        '`npx napi create-npm-dirs`',
    )
  }
  if (own.version !== version) {
    throw new ScriptError(`npm/${platform} is version ${own.version}, the main package ${version}`)
  }
  const target = join(stage, platform)
  await cp(folder, target, { recursive: true })
  await copyFile(join(native, binary), join(target, `${napi?.binaryName}.${platform}.node`))
  await copyFile(join(root, 'LICENSE'), join(target, 'LICENSE'))
  return target
}

/** @param {string} stage @param {Manifest} manifest @returns {Promise<string>} the package's folder */
async function stageMain(stage, manifest) {
  const target = join(stage, 'main')
  await mkdir(target)
  const contents = manifest.files.filter((entry) => !entry.startsWith('!'))
  for (const entry of [...contents, 'README.md', 'LICENSE']) {
    await cp(join(root, entry), join(target, entry), { recursive: true })
  }
  const kept = Object.entries(manifest).filter(([key]) => !privateKeys.includes(key))
  const optionalDependencies = await platformVersions()
  const published = { ...Object.fromEntries(kept), optionalDependencies }
  await writeFile(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
  return target
}

/** @returns {Promise<Record<string, string>>} every platform package and its version */
async function platformVersions() {
  const folders = await readdir(join(root, 'npm'))
  const manifests = await Promise.all(folders.map((name) => readManifest(join(root, 'npm', name))))
  return Object.fromEntries(manifests.map(({ name, version }) => [name, version]))
}

/**
 * @param {string} folder of the package
 * @param {string} destination
 * @returns {Promise<string>} the tarball
 */
async function npmPack(folder, destination) {
  const before = new Set(await readdir(destination))
  const code = await npm(['pack', '--silent', '--pack-destination', destination], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const tarball = (await readdir(destination)).find((name) => !before.has(name))
  if (code !== 0 || !tarball) throw new ScriptError(`\`npm pack\` failed in ${folder}`)
  return join(destination, tarball)
}

/**
 * @typedef {{ main: string, platform: string }} Tarballs absolute paths
 * @typedef {{ name: string, version: string, files: string[], napi?: { binaryName: string } }} Manifest
 *
 * @param {string} folder
 * @returns {Promise<Manifest>}
 */
async function readManifest(folder) {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
}

if (isMain(import.meta.url)) {
  main(async () => {
    await setup()
    for (const path of Object.values(await pack())) console.log(path)
  })
}
