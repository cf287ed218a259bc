/** `mmk dry-run <up|down> [file]`: what a run would do, without doing it. */
import { EXIT } from '../exit.js'

/** @type {import('../perform.js').Work} */
export async function run(cli, { to, batch, steps }, direction, file) {
  const { rehearse } = await import('../rehearsal.js')
  await rehearse(cli, direction, file, { to, batch, steps })
  return EXIT.ok
}
