/**
 * An app's folder as users have it: a package.json, a migrations directory, and our package in
 * node_modules. Migrations are written from strings, so that each test shows what it runs.
 */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from '../../scripts/process.js'
import { start } from './child.js'

/**
 * @typedef {object} Project
 * @property {string} folder
 * @property {string} migrationsDir
 * @property {NodeJS.ProcessEnv} env what every process of the project gets
 * @property {(path: string, text: string) => Promise<string>} write a file, by its path in the folder
 * @property {(args: readonly string[], options?: import('./child.js').Options) => import('./child.js').Child} mmk
 * @property {(path: string, options?: import('./child.js').Options) => import('./child.js').Child} node
 *   runs one of the project's files
 */

/**
 * @typedef {object} Options
 * @property {NodeJS.ProcessEnv} [env] goes to every process that the project starts; a test's
 *   database has one that names it
 * @property {'module' | 'commonjs'} [type] of its package.json
 * @property {'mongodb' | 'mongodb-6'} [driver] which of our installed drivers it has as `mongodb`
 *
 * @param {import('node:test').TestContext} t the folder and what runs in it end with this test
 * @param {Record<string, string>} [migrations] file name to source
 * @param {Options} [options]
 * @returns {Promise<Project>}
 */
export async function project(t, migrations = {}, options = {}) {
  const { env = {}, type = 'module', driver = 'mongodb' } = options
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'mmk-test-')))
  /** @type {import('./child.js').Child[]} */
  const children = []
  t.after(async () => {
    for (const child of children) child.kill('SIGKILL')
    await Promise.allSettled(children.map(({ ended }) => ended))
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  /** @type {Project['write']} */
  const write = async (path, text) => {
    const absolute = join(folder, path)
    await mkdir(dirname(absolute), { recursive: true })
    await writeFile(absolute, text)
    return absolute
  }
  await write('package.json', JSON.stringify({ name: 'app', private: true, type }))
  await mkdir(join(folder, 'migrations'))
  await link(folder, driver)
  for (const [name, source] of Object.entries(migrations)) await write(`migrations/${name}`, source)

  /** @param {readonly string[]} args @param {import('./child.js').Options} [options] */
  const node = (args, options) => {
    const own = { cwd: folder, ...options, env: { ...env, ...options?.env } }
    const child = start(process.execPath, args, own)
    children.push(child)
    return child
  }
  return {
    folder,
    migrationsDir: join(folder, 'migrations'),
    env,
    write,
    mmk: (args, options) => node([join(root, 'bin', 'mmk.js'), ...args], options),
    node: (path, options) => node([join(folder, path)], options),
  }
}

/**
 * @param {string} folder
 * @param {string} driver
 */
async function link(folder, driver) {
  const modules = join(folder, 'node_modules')
  await mkdir(modules)
  await symlink(root, join(modules, 'mongo-migrate-kit'), 'junction')
  await symlink(join(root, 'node_modules', driver), join(modules, 'mongodb'), 'junction')
}
