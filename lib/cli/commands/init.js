/** `mmk init`: a config file and the migrations directory. Here a bare `--json` is the file's format. */
import { InvalidArgumentError } from '../../errors.js'
import { escapeText } from '../../text.js'
import { EXIT } from '../exit.js'
import { shortPath } from '../kit.js'
import { printJson, printResult, stdoutColors } from '../output.js'

/** @type {import('../perform.js').Work} */
export async function run({ globals, json }, { js, ts, secretProvider, force }) {
  const inJson = globals.json === '1'
  if ([js, ts, inJson].filter(Boolean).length > 1) {
    throw new InvalidArgumentError('--js, --ts and --json exclude each other')
  }
  const { initProject } = await import('../../init.js')
  const { path, adopted } = await initProject({
    format: js ? 'js' : ts ? 'ts' : inJson ? 'json' : undefined,
    force,
    secretProvider,
    uri: globals.uri,
    dbName: globals.db,
    migrationsDir: globals.dir,
  })
  if (json) printJson({ path })
  else {
    printResult(stdoutColors().green(`✔ Created  ${shortPath(path)}`))
    for (const line of adopted === null ? FRESH_LINES : adoptedLines(adopted)) printResult(line)
  }
  return EXIT.ok
}

const FRESH_LINES = ['  Next: `mmk create <name>` makes a migration, `mmk up` applies it']

/** @param {import('../../migrate-mongo-config.js').MigrateMongoConfig} adopted */
function adoptedLines({ file, uri, changelog }) {
  const from = changelog === null ? '' : ` --from ${escapeText(changelog)}`
  return [
    `  with the settings of ${file}`,
    ...(uri === null ? ['  but for its URI, which is not written there: set MMK_URI'] : []),
    `  Next: \`mmk import${from}\` takes over what migrate-mongo has applied`,
  ]
}
