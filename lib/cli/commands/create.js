/** `mmk create <name>`: a new migration file. */
import { Option } from '../commander.js'
import { EXIT } from '../exit.js'
import { openKit, shortPath } from '../kit.js'
import { printJson, printResult, stdoutColors } from '../output.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addCreate(program, action) {
  program
    .command('create')
    .description('create a migration file')
    .argument('<name>', 'what it does, for example add-user-index')
    .addOption(new Option('--js', 'in JavaScript').conflicts('ts'))
    .addOption(new Option('--ts', 'in TypeScript').conflicts('js'))
    .option('--template <path>', 'file to copy')
    .action(action(create))
}

/** @type {import('../program.js').Work} */
async function create(cli, { js, ts, template }, name) {
  const kit = await openKit(cli)
  const path = await kit.create(name, { js, ts, template })
  if (cli.json) printJson({ path })
  else printResult(stdoutColors().green(`✔ Created  ${shortPath(path)}`))
  return EXIT.ok
}
