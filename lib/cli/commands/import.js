/** `mmk import`: take over the history of another tool. */
import { EXIT } from '../exit.js'
import { withRunningKit } from '../kit.js'
import { printJson, printResult, stdoutColors, terminalWidth } from '../output.js'

/**
 * @param {import('commander').Command} program
 * @param {import('../program.js').Action} action
 */
export function addImport(program, action) {
  program
    .command('import')
    .description("take over another tool's history")
    .option('--from <collection>', "the collection to read (default: the tool's, or changelog)")
    .option('--to <collection>', 'the collection to write (default: the configured one)')
    .option('--tool <name>', 'who wrote it (default: seen by its documents)')
    .option('--dry-run', 'only show what would be written')
    .option('--trust-hash', 'keep the recorded checksums of files that have changed')
    .option('--skip-missing', 'leave out migrations whose file is not here')
    .option('--force', 'import beside a history that did not come from there')
    .option('--no-lock', 'run without the lock: nothing else may run')
    .action(action(takeOver))
}

/** @type {import('../program.js').Work} */
async function takeOver(cli, { lock, ...options }) {
  const { from, to, tool, dryRun, trustHash, skipMissing, force } = options
  const wishes = { from, to, tool, dryRun, trustHash, skipMissing, force, noLock: !lock }
  const result = await withRunningKit(cli, (kit) => kit.import(wishes))
  const { rows, ...facts } = result
  if (cli.json) printJson(result, { ...facts, migrations: rows })
  else if (result.rows.length > 0) await printTable(result.rows, cli.globals.utc)
  return result.rejected.some(({ file }) => file !== null) ? EXIT.attention : EXIT.ok
}

/**
 * @param {import('../../../index.d.ts').ImportRow[]} rows
 * @param {boolean | undefined} utc
 */
async function printTable(rows, utc = false) {
  const { importTable } = await import('../import-table.js')
  printResult(importTable(rows, { colors: stdoutColors(), utc, width: terminalWidth() }))
}
