/** `mmk doctor`: is everything there that runs need, and is anything odd? It writes nothing. */
import { EXIT } from '../exit.js'
import { configOf } from '../flags.js'
import { shortPath } from '../kit.js'
import { printJson, printLog, printResult, stdoutColors } from '../output.js'

/** @import { Finding } from '../../doctor/finding.js' */

/** @type {import('../perform.js').Work} */
export async function run({ globals, json, progress }) {
  const { examine } = await import('../../doctor/index.js')
  const flags = configOf(globals)
  const { findings, configFile } = await examine({ flags, configPath: globals.config, progress })
  progress.onStop()
  const sound = findings.every(({ level }) => level !== 'problem')
  if (json) printJson({ sound, findings })
  else {
    if (configFile !== null) printLog(`Loaded config from ${shortPath(configFile)}`)
    for (const finding of findings) printFinding(finding)
  }
  return sound ? EXIT.ok : EXIT.attention
}

/** @param {Finding} finding */
function printFinding({ level, about, says, todo }) {
  const colors = stdoutColors()
  const [sign, paint] = /** @type {const} */ ({
    ok: ['✔', colors.green],
    note: ['•', colors.yellow],
    problem: ['✖', colors.red],
  })[level]
  printResult(`${paint(`${sign} ${about}`)}: ${says}`)
  if (todo !== null) printResult(colors.dim(`  → ${todo}`))
}
