/** `mmk create <name>`: a new migration file. */
import { EXIT } from '../exit.js'
import { openKit, shortPath } from '../kit.js'
import { printJson, printResult, stdoutColors } from '../output.js'

/** @type {import('../perform.js').Work} */
export async function run(cli, { js, ts, template }, name) {
  const kit = await openKit(cli)
  const path = await kit.create(name, { js, ts, template })
  if (cli.json) printJson({ path })
  else printResult(stdoutColors().green(`✔ Created  ${shortPath(path)}`))
  return EXIT.ok
}
