/** `mmk list`: the migrations, or those in one state. */
import { EXIT } from '../exit.js'
import { withKit } from '../kit.js'
import { printRows } from '../table.js'

/** @type {import('../perform.js').Work} */
export async function run(cli, { pending, applied }) {
  const filter = pending ? 'pending' : applied ? 'applied' : 'all'
  await printRows(cli, await withKit(cli, (kit) => kit.list(filter)))
  return EXIT.ok
}
