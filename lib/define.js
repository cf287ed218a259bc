/**
 * Functions that return their argument: they exist for the types that editors show.
 */

/**
 * @template {import('../index.d.ts').MigrationDefinition} T
 * @param {T} migration
 * @returns {T}
 */
export function defineMigration(migration) {
  return migration
}

/**
 * @template {import('../index.d.ts').MmkConfigInput} T
 * @param {T} config
 * @returns {T}
 */
export function defineConfig(config) {
  return config
}
