/** `mmk status`: what is applied, pending, or in need of a look. `--check` makes it a gate. */
import { listNames, plural } from '../../text.js'
import { EXIT } from '../exit.js'
import { withKit } from '../kit.js'
import { printError } from '../output.js'
import { printRows, readingRows } from '../table.js'

/** @import { StatusRow } from '../../../index.d.ts' */

/** @type {import('../perform.js').Work} */
export async function run(cli, { check }) {
  const rows = await withKit(cli, (kit) => {
    return readingRows(cli, () => kit.status({ requireDirectory: check === true }))
  })
  await printRows(cli, rows)
  return check ? judge(rows) : EXIT.ok
}

/** @param {StatusRow[]} rows */
function judge(rows) {
  const wrong = rows.filter((row) => {
    return ['failed', 'interrupted'].includes(row.state) || row.checksumOk === false || row.missing
  })
  if (wrong.length > 0) {
    const names = listNames(wrong.map((row) => row.file))
    printError(`✖ ${plural(wrong.length, 'migration')} in need of a look: ${names}`)
    return EXIT.attention
  }
  const pending = rows.filter((row) => row.status === 'pending').length
  if (pending === 0) return EXIT.ok
  printError(`✖ ${pending} pending migration(s)`)
  return EXIT.failed
}
