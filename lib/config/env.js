/**
 * The `MMK_*` environment, with `.env` of the working directory behind it.
 *
 * A variable that is already set is never overridden, not even by a blank one. What `.env` sets is
 * set for the whole process, because configuration files and migrations read it too.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { meantOption } from './meant.js'
import { ENV_NAMES } from './schema.js'

/** @import { Option } from './schema.js' */

/** Variables of our own test suite and tools: not configuration, so not worth a warning. */
const NOT_OURS_TO_CHECK = /^MMK_TEST_/

const TRUE = ['true', '1', 'yes', 'y', 'on']
const FALSE = ['false', '0', 'no', 'n', 'off']

/**
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} env is added to
 * @returns {Set<string>} the names that came from the file
 */
export function loadDotEnv(cwd, env) {
  const added = new Set()
  for (const [name, value] of Object.entries(parseEnv(readDotEnv(join(cwd, '.env'))))) {
    if (name in env) continue
    env[name] = value
    added.add(name)
  }
  return added
}

/** @param {string} path */
function readDotEnv(path) {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch {
    return ''
  }
}

/**
 * What an option's variable stands for. Text that can't be read stays text, and fails the check.
 * @param {Option} option
 * @param {NodeJS.ProcessEnv} env
 * @returns {unknown} `undefined`: not set, or blank
 */
export function envValue({ env: name, envType }, env) {
  const value = name === undefined ? undefined : env[name]?.trim()
  if (!value) return undefined
  if (envType === 'boolean') {
    const lower = value.toLowerCase()
    return TRUE.includes(lower) ? true : FALSE.includes(lower) ? false : value
  }
  if (envType === 'integer') return /^-?\d+$/.test(value) ? Number(value) : value
  return value
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {string[]} a warning for each variable that looks like ours and isn't
 */
export function unknownVariables(env) {
  return Object.keys(env)
    .filter((name) => name.startsWith('MMK_') && !ENV_NAMES.includes(name))
    .filter((name) => !NOT_OURS_TO_CHECK.test(name))
    .map((name) => `Unknown environment variable ${name}${remedy(name)}`)
}

/** @param {string} name */
function remedy(name) {
  const meant = meantOption(name)
  if (meant === null) return ''
  if (meant.env !== undefined) return ` — did you mean ${meant.env}?`
  return ` — there is none for "${meant.key}": set it in the configuration file`
}
