/** `mmk mark <file>`: say what is so, after a look at the database. No body runs. */

import { InvalidArgumentError } from '../../errors.js'
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson } from '../output.js'

/** @type {import('../perform.js').Work} */
export async function run(cli, { applied, pending, reason }, file) {
  if (!applied && !pending) {
    throw new InvalidArgumentError('`mark` has to be told what is so', {
      hint: 'add --applied or --pending',
    })
  }
  const state = applied ? 'applied' : 'pending'
  const result = await withRunningKit(cli, (kit) => kit.mark(file, state, { reason }))
  // Version 2 has it among its migrations.
  if (cli.json) printJson(result, {})
  return EXIT.ok
}
