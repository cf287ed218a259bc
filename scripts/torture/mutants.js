/**
 * The core with its mutants (cargo feature `mutants`, `src/mutant.rs`), built beside the real one and
 * never in its place.
 */
import { copyFile, mkdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { cargo, cargoEnv } from '../cargo.js'
import { root, ScriptError } from '../process.js'

const addon = join(root, '.cache', 'mutants', 'mmk.node')

/** @returns {Promise<string>} path of the addon */
export async function buildMutants() {
  if ((await cargo(['build', '--features', 'mutants'])) !== 0) {
    throw new ScriptError('The core with its mutants could not be built')
  }
  const { CARGO_BUILD_TARGET = '' } = await cargoEnv()
  await mkdir(dirname(addon), { recursive: true })
  const built = join(root, 'target', CARGO_BUILD_TARGET, 'debug', 'libmongo_migrate_kit.so')
  // Written over, it would end the processes of another torture that have it loaded.
  const draft = `${addon}.${process.pid}`
  await copyFile(built, draft)
  await rename(draft, addon)
  return addon
}
