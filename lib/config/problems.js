/**
 * Tells all problems of a configuration at once, each with the value, where it came from and how to
 * set it. Values are shown without secrets.
 */
import { ConfigInvalidError } from '../errors.js'
import { redact, redactUri } from '../redact.js'
import { escapeText } from '../text.js'

/** @import { ConfigIssue } from '../../index.d.ts' */
/** @import { Option } from './schema.js' */

const MAX_SHOWN = 200

/**
 * @param {unknown} value
 * @param {boolean} [secret]
 * @returns {string}
 */
export function showValue(value, secret = false) {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'string') {
    const shown = JSON.stringify(secret ? redactUri(value) : redact(value))
    return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown
  }
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  return String(value)
}

/**
 * Every way to give a key a value.
 * @param {Option} option
 */
export function howToSet({ key, env, flag }) {
  const ways = [
    flag && `the ${flag} flag`,
    env && `the environment variable ${env}`,
    `"${key}" in mmk.config.js (see \`mmk init\`)`,
    `"${key}" in the object passed to runMigrations or MigratorKit`,
  ].filter(Boolean)
  return ways.length === 2
    ? ways.join(' or ')
    : `${ways.slice(0, -1).join(', ')}, or ${ways.at(-1)}`
}

/**
 * @param {ConfigIssue} issue
 * @param {number} index
 */
function block(issue, index) {
  const facts = [
    issue.received !== undefined && `Received: ${issue.received}`,
    issue.source !== undefined && `Read from: ${issue.source}`,
    issue.howToSet !== undefined && `Set it with: ${issue.howToSet}`,
  ].filter((fact) => typeof fact === 'string')
  const lines = [
    `  ${index + 1}. ${issue.key} ${issue.problem}`,
    ...facts.map((fact) => `     ${fact}`),
  ]
  return lines.join('\n')
}

/**
 * @param {ConfigIssue[]} issues
 * @param {{ notes?: readonly string[], hint?: string | null }} [beside] `notes`: what is no problem by
 *   itself, and may be the reason for one
 * @returns {InstanceType<typeof ConfigInvalidError>}
 */
export function configInvalid(issues, { notes = [], hint = null } = {}) {
  const shown = issues.map((issue) => ({ ...issue, key: escapeText(issue.key) }))
  const count = `${issues.length} problem${issues.length === 1 ? '' : 's'} found:`
  const aside = notes.map((note) => `  • ${note}`).join('\n')
  const blocks = [...shown.map(block), ...(aside === '' ? [] : [aside])]
  return new ConfigInvalidError(
    `Invalid mongo-migrate-kit configuration — ${count}\n\n${blocks.join('\n\n')}`,
    { context: { issues: shown, notes: [...notes] }, hint },
  )
}
