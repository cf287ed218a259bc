/**
 * The published mongo-migrate-kit 1.3.0, as another repo on the same database still has it.
 */
import { join } from 'node:path'
import { root } from '../../scripts/process.js'
import { start } from './child.js'

const cli = join(root, 'node_modules', 'mongo-migrate-kit-1x', 'dist', 'mmk.cjs')

/**
 * @param {import('./project.js').Project} app whose migrations it runs
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 */
export function oneX(app, args, env = {}) {
  return start(process.execPath, [cli, ...args], {
    cwd: app.folder,
    env: { ...app.env, ...env },
  })
}
