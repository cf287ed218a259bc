/** `mmk completion <shell>`: a script that completes commands, flags and migrations. */
import { SCRIPTS } from '../completion.js'
import { EXIT } from '../exit.js'
import { printJson, printResult } from '../output.js'

/** @type {import('../perform.js').Work} */
export async function run({ json, program }, _options, shell) {
  const script = SCRIPTS[shell](program)
  if (json) printJson({ shell, script })
  else printResult(script.trimEnd())
  return EXIT.ok
}
