/** `mmk list`: the migrations, or those in one state. */
import { EXIT } from '../exit.js'
import { withKit } from '../kit.js'
import { printRows, readingRows } from '../table.js'

/** @type {import('../perform.js').Work} */
export async function run(cli, { pending, applied }) {
  const filter = pending ? 'pending' : applied ? 'applied' : 'all'
  const rows = await withKit(cli, (kit) => readingRows(cli, () => kit.list(filter)))
  await printRows(cli, rows)
  return EXIT.ok
}
