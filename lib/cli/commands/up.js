/** `mmk up [file]`: apply what is pending, or one file. */

import { InvalidArgumentError } from '../../errors.js'
import { escapeText } from '../../text.js'
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/** @import { LockOptions } from '../../../index.d.ts' */

/** @type {import('../perform.js').Work} */
export async function run(cli, options, file) {
  const { to, force, forceFresh, step, strict, wait, yes } = options
  const flags = strict ? { strict } : {}
  if (wait === true && /^\d+$/.test(file ?? '')) throw detachedTime(file)
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
 * A bare number names no migration: every file has an extension. Said before anybody waits.
 * @param {string} number
 */
function detachedTime(number) {
  return new InvalidArgumentError(`"${number}" was read as the file to apply, and is none`, {
    context: { file: number },
    hint: `a time to wait is part of the flag: \`--wait=${number}\``,
  })
}

/**
 * @param {number | true | undefined} wait
 * @returns {LockOptions}
 */
function waitOptions(wait) {
  if (wait === undefined) return {}
  return wait === true ? { onLockHeld: 'wait' } : { onLockHeld: 'wait', lockWaitTimeoutMs: wait }
}
