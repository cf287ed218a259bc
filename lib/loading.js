/**
 * Loads what a run needs, and tells the core of each file what matters to the plan, or why it can't be
 * used.
 */
import { loadMigration, locateFile } from './modules.js'
import { redact } from './redact.js'
import { hostError } from './reported.js'

/** @import * as core from './contract.d.ts' */
/** @import { MigrationDefinition } from '../index.d.ts' */
/** @import { Setting } from './host.js' */

/**
 * @param {string[]} names
 * @param {Setting} setting
 * @param {Map<string, MigrationDefinition>} migrations is added to
 * @returns {Promise<core.ModuleFacts[]>}
 */
export async function loadAll(names, { config, causes, fresh }, migrations) {
  /** @type {core.ModuleFacts[]} */
  const facts = []
  for (const name of names) {
    try {
      const migration = await loadMigration(await locateFile(config.migrationsDir, name), { fresh })
      migrations.set(name, migration)
      facts.push(factsOf(name, migration))
    } catch (error) {
      facts.push({ ok: false, name, error: hostError(error, causes) })
    }
  }
  return facts
}

/**
 * @param {string} name
 * @param {MigrationDefinition} migration
 * @returns {core.ModuleFacts}
 */
function factsOf(name, { down, useTransaction, description, onInterrupted }) {
  return {
    ok: true,
    name,
    down: down !== undefined,
    useTransaction: useTransaction ?? null,
    description: description ? redact(description) : null,
    onInterrupted: onInterrupted ?? null,
  }
}
