/**
 * `mmk unlock`: show who holds the lock and, if told to, force-release it.
 *
 * Only the lock that was shown is released: one that has changed hands meanwhile stays. Without a
 * terminal and without `--yes` it reports and changes nothing.
 */

import { unlockLines } from '../../messages.js'
import { heldBy } from '../document.js'
import { EXIT } from '../exit.js'
import { withKit } from '../kit.js'
import { canAsk, printJson, printNote, printResult, printWarning, stdoutColors } from '../output.js'

/** @import { LockInfo, MigratorKit } from '../../../index.d.ts' */

/** @type {import('../perform.js').Work} */
export function run(cli, { yes, force }) {
  return withKit(cli, async (kit) => {
    const lock = await kit.lockInfo()
    if (lock === null) return answer(cli, { released: false, holder: null })
    const lines = unlockLines(lock, { ourNamespace: kit.namespace })
    for (const line of lines) line.startsWith('⚠') ? printWarning(line) : printNote(line)
    if (!yes && !force) {
      if (cli.json || !canAsk()) return reportOnly(cli, lock)
      const { askFirst } = await import('../prompt.js')
      const refusal = await askFirst(cli, 'Force-release this lock? [y/N] ')
      if (refusal !== null) return refusal
    }
    return release(cli, kit, lock)
  })
}

/** @param {import('../perform.js').Cli} cli @param {LockInfo} lock */
function reportOnly(cli, lock) {
  if (cli.json) tellJson({ released: false, holder: lock })
  printNote('Nothing was released: `mmk unlock --yes` releases it (check the holder first)')
  return lock.expired ? EXIT.ok : EXIT.locked
}

/**
 * @param {import('../perform.js').Cli} cli
 * @param {MigratorKit} kit
 * @param {LockInfo} shown
 */
async function release(cli, kit, shown) {
  const holder = await kit.forceUnlock({ owner: shown.owner })
  if (holder !== null) return answer(cli, { released: true, holder })
  const now = await kit.lockInfo()
  if (now === null) return answer(cli, { released: false, holder: null })
  if (cli.json) tellJson({ released: false, holder: now })
  printWarning('⚠ The lock has changed hands since it was shown: nothing was released')
  return EXIT.locked
}

/**
 * @param {import('../perform.js').Cli} cli
 * @param {{ released: boolean, holder: LockInfo | null }} outcome
 */
function answer(cli, outcome) {
  if (cli.json) tellJson(outcome)
  else if (outcome.released) printResult(stdoutColors().green('✔ Lock released'))
  else printResult('No migration lock is currently held')
  return EXIT.ok
}

/** @param {{ released: boolean, holder: LockInfo | null }} outcome */
function tellJson({ released, holder }) {
  printJson({ released, holder }, { released, lock: heldBy(holder) })
}
