/**
 * `node scripts/cargo.js <arguments>`: cargo with the host as explicit target, always.
 *
 * The napi CLI passes `--target` and cargo keeps artifacts of explicit targets in a folder of their
 * own; naming the same target in every call lets build, test and clippy share one set of them.
 */
import { capture, isMain, main, run, ScriptError } from './process.js'

/** @returns {Promise<string>} the host's target triple, as rustc names it */
async function hostTriple() {
  const { code, stdout } = await capture('rustc', ['-vV'])
  const triple = /^host: (.+)$/m.exec(stdout)?.[1]
  if (code !== 0 || !triple) {
    throw new ScriptError(
      'No Rust toolchain found (`rustc -vV` does not run): install one from https://rustup.rs',
    )
  }
  return triple
}

/** @returns {Promise<NodeJS.ProcessEnv>} the environment that every cargo call gets */
export async function cargoEnv() {
  return {
    ...process.env,
    CARGO_BUILD_TARGET: process.env.CARGO_BUILD_TARGET ?? (await hostTriple()),
  }
}

/**
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} [env] added to ours
 * @returns {Promise<number>} cargo's exit code
 */
export async function cargo(args, env) {
  return run('cargo', args, { env: { ...(await cargoEnv()), ...env } })
}

if (isMain(import.meta.url)) main(() => cargo(process.argv.slice(2)))
