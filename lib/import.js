/**
 * Taking over the history of another tool: asks the core for it, and says what came of it in 1.x's
 * wording.
 *
 * Promises: every document that became no entry is named or counted. It reads no document itself;
 * the formats are the core's (`src/import`).
 */

import { cautions } from './cautions.js'
import { showValue } from './config/problems.js'
import { replyValue } from './engine.js'
import { InvalidArgumentError } from './errors.js'
import { lateHost } from './late-host.js'
import { cancellable } from './running.js'
import { escapeText } from './text.js'
import { createCauses } from './thrown.js'

/** @import { ImportReport, ImportRequest } from './contract.d.ts' */
/** @import { ImportOptions, ImportResult, ImportTool, MmkConfig, MmkLogger } from '../index.d.ts' */
/** @import { Engine } from './engine.js' */

/** @typedef {{ level: keyof MmkLogger, text: string }} Line */

/** Of one kind: a whole changelog of them would push everything else off the screen. */
const MOST_LINES = 20

/**
 * @param {Engine} engine
 * @param {ImportOptions} [options]
 * @returns {Promise<ImportResult>}
 */
export async function importHistory(engine, options = {}) {
  const { core, logger, report } = engine
  const { config } = engine.resolved
  const request = importRequest(options, config)
  const causes = createCauses()
  const host = lateHost({ config, logger, causes, emit: report })
  if (!request.dryRun) for (const event of cautions(config)) host.emit(event)
  const found = await cancellable(core, options.signal, async () => {
    return replyValue(engine, await core.import(request, host), causes)
  })
  for (const { level, text } of importLines(found)) logger?.[level](text)
  return importResult(found)
}

/**
 * @param {ImportOptions} options
 * @param {Readonly<Pick<MmkConfig, 'lockCollection'>>} config
 * @returns {ImportRequest}
 */
export function importRequest(options, { lockCollection }) {
  const from = name('from', options.from)
  const to = name('to', options.to)
  for (const [option, collection] of Object.entries({ from, to })) {
    if (collection === lockCollection) throw lockIsNoHistory(option, lockCollection)
  }
  return {
    from,
    to,
    tool: name('tool', options.tool),
    dryRun: Boolean(options.dryRun),
    trustHash: Boolean(options.trustHash),
    skipMissing: Boolean(options.skipMissing),
    force: Boolean(options.force),
    noLock: Boolean(options.noLock),
  }
}

/**
 * @param {string} option
 * @param {unknown} value
 */
function name(option, value) {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' && value !== '') return value
  throw new InvalidArgumentError(`\`${option}\` must be a name, not ${showValue(value)}`, {
    context: { [option]: value },
  })
}

/** @param {string} option @param {string} lockCollection */
function lockIsNoHistory(option, lockCollection) {
  const shown = escapeText(lockCollection)
  return new InvalidArgumentError(
    `\`${option}\` must not be "${shown}": that is the lockCollection, and holds no history`,
    { context: { [option]: lockCollection, lockCollection } },
  )
}

/**
 * @param {ImportReport} report
 * @returns {ImportResult}
 */
function importResult({ changed: _, rows, tool, ...report }) {
  return {
    ...report,
    tool: /** @type {ImportTool | null} */ (tool),
    rows: rows.map(({ appliedAt, ...row }) => ({
      ...row,
      appliedAt: appliedAt === null ? null : new Date(appliedAt),
    })),
  }
}

/**
 * The lines for what an import came to, in order. Pure.
 * @param {ImportReport} report
 * @returns {Line[]}
 */
export function importLines(report) {
  const { rejected, rows, changed, tool } = report
  const malformed = rejected.filter(({ why }) => why === 'malformed')
  const leftOut = rejected.filter(({ why }) => why !== 'malformed')
  const missing = rows.filter(({ checksumSource }) => checksumSource === 'missing')
  return [
    ...lines('warn', malformed, ({ id, reason }) => {
      return `⚠ Skipping source doc ${escapeText(reason)}   [_id ${escapeText(id)}]`
    }),
    ...lines('dim', leftOut, ({ reason }) => `⏭ Left out  ${escapeText(reason)}`),
    ...lines('warn', missing, ({ file }) => {
      return `⚠ File not found on disk: ${escapeText(file)} — checksum unverifiable`
    }),
    ...lines('warn', changed, (file) => {
      return `⚠ Changed since ${tool} applied it: ${escapeText(file)} — accepted as it is now`
    }),
    ...outcome(report),
    ...runAgain(rejected.flatMap(({ file }) => file ?? [])),
  ]
}

/**
 * @template T
 * @param {Line['level']} level
 * @param {T[]} facts
 * @param {(fact: T) => string} text
 * @returns {Line[]}
 */
function lines(level, facts, text) {
  const shown = facts.slice(0, MOST_LINES).map((fact) => ({ level, text: text(fact) }))
  const more = facts.length - shown.length
  return more > 0 ? [...shown, { level, text: `  … and ${more} more of this kind` }] : shown
}

/**
 * @param {ImportReport} report
 * @returns {Line[]}
 */
function outcome({ tool, source, target, dryRun, imported, rows, alreadyThere }) {
  const from = escapeText(source)
  if (tool === null) return [{ level: 'info', text: `Nothing to import from "${from}"` }]
  const way = `from "${from}" → "${escapeText(target)}"`
  /** @type {Line} */
  const done = dryRun
    ? { level: 'info', text: `◎ Dry-run  Would import ${rows.length} record(s) ${way}` }
    : { level: 'success', text: `✔ Imported ${imported} record(s) ${way}` }
  if (alreadyThere === 0) return [done]
  return [done, { level: 'dim', text: `  ${alreadyThere} record(s) were there already` }]
}

/**
 * @param {string[]} files
 * @returns {Line[]}
 */
function runAgain(files) {
  return lines('warn', files, (file) => {
    const shown = escapeText(file)
    return `⚠ ${shown} is pending: if it is applied, say so with \`mmk mark ${shown} --applied\``
  })
}
