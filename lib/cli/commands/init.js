/** `mmk init`: a config file and the migrations directory. Here a bare `--json` is the file's format. */
import { InvalidArgumentError } from '../../errors.js'
import { escapeText } from '../../text.js'
import { EXIT } from '../exit.js'
import { shortPath } from '../kit.js'
import { printJson, printResult, printWarning, stdoutColors } from '../output.js'

/** @type {import('../perform.js').Work} */
export async function run({ globals, json }, { js, ts, secretProvider, force }) {
  const inJson = globals.json === '1'
  if ([js, ts, inJson].filter(Boolean).length > 1) {
    throw new InvalidArgumentError('--js, --ts and --json exclude each other')
  }
  const { initProject } = await import('../../init.js')
  const made = await initProject({
    format: js ? 'js' : ts ? 'ts' : inJson ? 'json' : undefined,
    force,
    secretProvider,
    uri: globals.uri,
    dbName: globals.db,
    migrationsDir: globals.dir,
  })
  const { path, adopted } = made
  if (json) printJson({ path })
  else {
    printResult(stdoutColors().green(`✔ Created  ${shortPath(path)}`))
    for (const line of adopted === null ? FRESH_LINES : adoptedLines(adopted, made.unset)) {
      printResult(line)
    }
  }
  if (made.holdsSecret) printWarning(secretText(shortPath(path)))
  return EXIT.ok
}

const FRESH_LINES = ['  Next: `mmk create <name>` makes a migration, `mmk up` applies it']

/** By key: what it is to those who read of it, and its variable. */
const UNSET = /** @type {const} */ ({
  uri: ['its URI', 'MMK_URI'],
  dbName: ["its database's name", 'MMK_DB'],
})

/**
 * @param {import('../../migrate-mongo-config.js').MigrateMongoConfig} adopted
 * @param {import('../../init.js').Initialised['unset']} unset
 */
function adoptedLines({ file, changelog }, unset) {
  const from = changelog === null ? '' : ` --from ${escapeText(changelog)}`
  return [
    `  with the settings of ${file}`,
    ...(unset.length > 0 ? [unsetLine(unset)] : []),
    `  Next: \`mmk import${from}\` takes over what migrate-mongo has applied`,
  ]
}

/** @param {import('../../init.js').Initialised['unset']} unset */
function unsetLine(unset) {
  const [names, variables] = [0, 1].map((at) => unset.map((key) => UNSET[key][at]).join(' and '))
  const verb = unset.length > 1 ? 'are' : 'is'
  return `  but for ${names}, which ${verb} not written there: set ${variables}`
}

/** @param {string} path */
function secretText(path) {
  return (
    `⚠ ${path} holds a password, and such a file is usually committed: ` +
    'leave uri out of it and set MMK_URI, in the environment or in .env'
  )
}
