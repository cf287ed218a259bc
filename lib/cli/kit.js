/**
 * One `MigratorKit` for one command: made from the flags, connected, and closed whatever happens.
 *
 * The kit, and with it driver and addon, is imported only here, when a verb needs it.
 */
import { relative } from 'node:path'
import { escapeText } from '../text.js'
import { configOf } from './flags.js'
import { observe, printLog } from './output.js'
import { handOverSignals } from './signals.js'

/** @import { MigratorKit, MmkConfigInput } from '../../index.d.ts' */

/**
 * A kit that isn't connected: enough to create a file.
 * @param {import('./perform.js').Cli} cli
 * @param {Partial<MmkConfigInput>} [flags] the verb's own flags, as configuration
 * @returns {Promise<MigratorKit>}
 */
export async function openKit({ globals, documents, progress, runs }, flags = {}) {
  const { MigratorKit } = await import('../kit.js')
  const options = {
    flags: { ...configOf(globals), ...flags },
    configPath: globals.config,
    progress,
    onEvent: observe,
    ...(documents && { onReport: documents.conclude }),
  }
  if (!runs) return new MigratorKit({}, options)
  const frame = documents?.frame()
  return new MigratorKit({}, { ...options, onCore: (core) => handOverSignals(core, frame) })
}

/**
 * A kit for a command that runs migrations.
 * @template T
 * @param {import('./perform.js').Cli} cli
 * @param {(kit: MigratorKit) => Promise<T>} work
 * @param {Partial<MmkConfigInput>} [flags]
 */
export function withRunningKit(cli, work, flags) {
  return withKit({ ...cli, runs: true }, work, flags)
}

/**
 * @template T
 * @param {import('./perform.js').Cli} cli
 * @param {(kit: MigratorKit) => Promise<T>} work
 * @param {Partial<MmkConfigInput>} [flags]
 * @returns {Promise<T>}
 */
export async function withKit(cli, work, flags) {
  const kit = await openKit(cli, flags)
  try {
    await kit.connect().finally(() => announce(kit))
    return await work(kit)
  } finally {
    cli.progress.onStop()
    await kit.disconnect()
  }
}

/**
 * Says which file the configuration came from, above all when the connection fails.
 * @param {MigratorKit} kit
 */
function announce({ configFile }) {
  if (configFile !== null) printLog(`Loaded config from ${shortPath(configFile)}`)
}

/**
 * A path as the reader would type it here.
 * @param {string} path absolute
 */
export function shortPath(path) {
  const short = relative(process.cwd(), path)
  return escapeText(short.startsWith('..') ? path : short)
}
