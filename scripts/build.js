/**
 * `npm run build`: the addon, in release mode, into lib/native/ (`--debug`: faster to build, slower
 * to run, never packed). Cargo decides what has to be compiled again.
 *
 * The loader and its types are generated next to the binary and committed. The loader is CommonJS,
 * unlike the rest of this package: the package.json beside it says so.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cargoEnv } from './cargo.js'
import { isMain, main, root, run } from './process.js'

const napi = join(root, 'node_modules', '@napi-rs', 'cli', 'dist', 'cli.js')

/**
 * @param {{ debug?: boolean }} [options]
 * @returns {Promise<number>} the exit code
 */
export async function build({ debug = false } = {}) {
  const args = ['build', '--platform', '--output-dir', 'lib/native']
  args.push('--js', 'index.js', '--dts', 'index.d.ts')
  if (!debug) args.push('--release')
  return run(process.execPath, [napi, ...args], { env: await cargoEnv() })
}

if (isMain(import.meta.url)) {
  main(() => build(parseArgs({ options: { debug: { type: 'boolean' } } }).values))
}
