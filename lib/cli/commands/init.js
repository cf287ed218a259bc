/** `mmk init`: a config file and the migrations directory. Here `--json` is the file's format. */
import { InvalidArgumentError } from '../../errors.js'
import { EXIT } from '../exit.js'
import { shortPath } from '../kit.js'
import { printResult, stdoutColors } from '../output.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addInit(program, action) {
  const command = program
    .command('init')
    .description('write a config file and make the migrations directory')
    .option('--js', 'write mmk.config.js (the default)')
    .option('--ts', 'write mmk.config.ts')
    .option('--json', 'write mmk.config.json')
    .option('--secret-provider', 'a config that fetches its URI from a secret store')
    .option('--force', 'write over an existing config file')
  command.configureHelp({
    visibleGlobalOptions: () => program.options.filter((option) => option.long !== '--json'),
  })
  command.action(action(init))
}

/** @type {import('../program.js').Work} */
async function init({ globals }, { js, ts, secretProvider, force }) {
  if ([js, ts, globals.json].filter(Boolean).length > 1) {
    throw new InvalidArgumentError('--js, --ts and --json exclude each other')
  }
  const { initConfig } = await import('../../init.js')
  const path = await initConfig({
    format: ts ? 'ts' : globals.json ? 'json' : 'js',
    force,
    secretProvider,
    uri: globals.uri,
    dbName: globals.db,
    migrationsDir: globals.dir,
  })
  printResult(stdoutColors().green(`✔ Created  ${shortPath(path)}`))
  return EXIT.ok
}
