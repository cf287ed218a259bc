/** `mmk completion <shell>`: a script that completes commands, flags and migrations. */
import { Argument } from '../commander.js'
import { SCRIPTS } from '../completion.js'
import { EXIT } from '../exit.js'
import { printJson, printResult } from '../output.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addCompletion(program, action) {
  program
    .command('completion')
    .description('print a completion script for your shell')
    .addArgument(new Argument('<shell>', 'whose it is').choices(Object.keys(SCRIPTS)))
    .action(
      action(async ({ json }, _options, shell) => {
        const script = SCRIPTS[shell](program)
        if (json) printJson({ shell, script })
        else printResult(script.trimEnd())
        return EXIT.ok
      }),
    )
}
