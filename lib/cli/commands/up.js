/** `mmk up [file]`: apply what is pending, or one file. */

import { escapeText } from '../../text.js'
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/** @import { LockOptions } from '../../../index.d.ts' */

/** @type {import('../perform.js').Work} */
export async function run(cli, options, file) {
  const { to, force, forceFresh, step, strict, wait, yes } = options
  const flags = strict ? { strict } : {}
  if (options.dryRun) {
    const { rehearse } = await import('../rehearsal.js')
    await rehearse(cli, 'up', file, { to, force, forceFresh }, flags)
    return EXIT.ok
  }
  if (file !== undefined && force && !yes) {
    const question = `are you sure you want to re-run "${escapeText(file)}"? [y/N] `
    const { askFirst } = await import('../prompt.js')
    const refusal = await askFirst(cli, question)
    if (refusal !== null) return refusal
  }
  const results = await withRunningKit(
    cli,
    (kit) => {
      const lock = { noLock: !options.lock, ...waitOptions(wait) }
      return kit.up(file, { to, force, forceFresh, step, ...lock })
    },
    flags,
  )
  if (cli.json) printJson(results, { dryRun: false })
  return EXIT.ok
}

/**
 * @param {number | true | undefined} wait
 * @returns {LockOptions}
 */
function waitOptions(wait) {
  if (wait === undefined) return {}
  return wait === true ? { onLockHeld: 'wait' } : { onLockHeld: 'wait', lockWaitTimeoutMs: wait }
}
