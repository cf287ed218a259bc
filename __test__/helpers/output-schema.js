/**
 * The published JSON Schema of the output, held against what comes out. Readers must bear with fields
 * that they don't know, so the schema allows them; here none may appear that it doesn't name.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'

const text = readFileSync(new URL('../../schema/output-2.json', import.meta.url), 'utf8')

/** @param {any} schema */
function closed(schema) {
  const validator = new Ajv2020({ allErrors: true, strict: true, strictRequired: false })
  return validator.compile(schema)
}

const document = closed({ ...JSON.parse(text, closeObjects), unevaluatedProperties: false })
const event = closed({
  $ref: '#/$defs/event',
  $defs: JSON.parse(text, closeObjects).$defs,
})

/**
 * @param {string} key
 * @param {any} value
 */
function closeObjects(key, value) {
  if (key === 'commands') return Object.fromEntries(Object.entries(value).map(open))
  const names = value !== null && typeof value === 'object' && 'properties' in value
  return names && value.type === 'object' && value.required && !('$schema' in value)
    ? { ...value, additionalProperties: false }
    : value
}

/** A command's fields stand beside those that all have. @param {[string, any]} entry */
function open([name, { additionalProperties: _, ...schema }]) {
  const oneOf = schema.oneOf?.map((/** @type {any} */ { additionalProperties: __, ...one }) => one)
  return [name, oneOf ? { ...schema, oneOf } : schema]
}

/**
 * @param {any} value
 * @param {string | null} command
 */
export function assertDocument(value, command) {
  assert.equal(value.command, command)
  assertValid(document, value)
}

/** @param {any} value */
export function assertEvent(value) {
  assertValid(event, value)
}

/**
 * @param {import('ajv').ValidateFunction} validate
 * @param {any} value
 */
function assertValid(validate, value) {
  if (validate(value)) return
  const wrong = validate.errors?.map(({ instancePath, message, params }) => {
    return `${instancePath || '/'} ${message} ${JSON.stringify(params)}`
  })
  assert.fail(`${wrong?.join('\n')}\n${JSON.stringify(value, null, 2)}`)
}
