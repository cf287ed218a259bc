/** `mmk down [file]`: revert the last batch, another one, the last few, back to a file, or one. */

import { escapeText, plural } from '../../text.js'
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/** @typedef {{ file?: string, to?: string, batch?: number, steps?: number }} Target */

/** @type {import('../perform.js').Work} */
export async function run(cli, { to, batch, steps, lock, force, yes, dryRun }, file) {
  if (dryRun) {
    const { rehearse } = await import('../rehearsal.js')
    await rehearse(cli, 'down', file, { to, batch, steps, force })
    return EXIT.ok
  }
  if (force && !yes) {
    const { askFirst } = await import('../prompt.js')
    const refusal = await askFirst(cli, forceQuestion({ file, to, batch, steps }))
    if (refusal !== null) return refusal
  }
  const results = await withRunningKit(cli, (kit) =>
    kit.down(file, { noLock: !lock, to, batch, steps, force }),
  )
  if (cli.json) printJson(results, { dryRun: false })
  return EXIT.ok
}

/** @param {Target} target */
function forceQuestion(target) {
  return (
    '⚠ Forcing rollback ignores checksum drift — the current down() runs against your DB.\n' +
    `  Roll back ${nameOf(target)} anyway? [y/N] `
  )
}

/** @param {Target} target */
function nameOf({ file, to, batch, steps }) {
  if (file) return `"${escapeText(file)}"`
  if (to) return `everything applied after "${escapeText(to)}"`
  if (batch) return `batch ${batch}`
  return steps ? `the last ${plural(steps, 'migration')}` : 'the last batch'
}
