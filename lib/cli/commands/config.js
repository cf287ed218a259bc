/** `mmk config`: every setting as it stands, where it came from, and no secrets. Connects to nothing. */
import { EXIT } from '../exit.js'
import { configOf } from '../flags.js'
import { shortPath } from '../kit.js'
import { printJson, printLog, printResult, printWarning, stdoutColors } from '../output.js'

/** @import { Setting } from '../../config/shown.js' */

/** @type {import('../perform.js').Work} */
export async function run({ globals, json }) {
  const { resolveConfig } = await import('../../config/index.js')
  const { shownSettings } = await import('../../config/shown.js')
  const resolved = await resolveConfig({
    flags: configOf(globals),
    configPath: globals.config,
    connects: false,
  })
  const { configFile, warnings } = resolved
  const settings = shownSettings(resolved)
  for (const warning of warnings) printWarning(`⚠ ${warning}`)
  if (json) {
    printJson({ configFile, settings })
    return EXIT.ok
  }
  if (configFile !== null) printLog(`Loaded config from ${shortPath(configFile)}`)
  printResult(await settingsTable(settings))
  return EXIT.ok
}

/** @param {Setting[]} settings */
async function settingsTable(settings) {
  const { settingsText } = await import('../settings-table.js')
  const width = (process.stdout.isTTY && process.stdout.columns) || undefined
  return settingsText(settings, { colors: stdoutColors(), width })
}
