/**
 * The product that is tortured: the packed tarballs, installed in a folder of their own, as its users
 * have it. Only the driver is this repository's, so that a torture's own code and the product share one.
 */
import { mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pack } from '../pack.js'
import { npm, root, ScriptError } from '../process.js'

/**
 * @template T
 * @param {(folder: string) => Promise<T>} body gets the folder whose `node_modules` has the product
 * @returns {Promise<T>}
 */
export async function withProduct(body) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'mmk-product-')))
  try {
    await install(folder)
    return await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** @param {string} folder */
async function install(folder) {
  const tarballs = Object.values(await pack(join(folder, 'packed')))
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  const quietly = ['--silent', '--no-audit', '--no-fund', '--prefer-offline']
  // The driver is a peer dependency, which would be installed from elsewhere.
  const code = await npm(['install', '--legacy-peer-deps', ...quietly, ...tarballs], {
    cwd: folder,
  })
  if (code !== 0) throw new ScriptError('The packed tarballs could not be installed')
  const driver = join('node_modules', 'mongodb')
  await symlink(join(root, driver), join(folder, driver), 'junction')
}
