/**
 * Creates one migration file.
 *
 * Promises: an existing file is never overwritten, the new name sorts after those made before it, and
 * the template is in the module system that Node will read the file with. It does not promise order
 * between two people who create at the same second on two machines: nothing can.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { InvalidArgumentError, MigrationFileNotFoundError } from './errors.js'
import { usesEsModules } from './package-type.js'
import { escapeText } from './text.js'

/**
 * @typedef {{
 *   migrationsDir: string
 *   fileExtensions: readonly string[]
 *   createExtension: 'js' | 'ts'
 *   sequential: boolean
 *   templatePath?: string | undefined
 * }} CreateConfig
 */

/** @typedef {{ template?: string, js?: boolean, ts?: boolean, cwd?: string }} CreateOptions */

/** File systems stop at 255 bytes; the rest is room for copies, locks and backups beside the file. */
const MAX_NAME_BYTES = 200

/** A stamp may be taken by as many files as were created in the seconds ahead; more is a mistake. */
const MAX_ATTEMPTS = 1000

/** What each kind of extension may fall back to when `fileExtensions` leaves the plain one out. */
const EXTENSIONS = { js: ['.js', '.mjs', '.cjs'], ts: ['.ts', '.mts', '.cts'] }

/**
 * @param {CreateConfig} config `migrationsDir` absolute
 * @param {string} name what the migration does, in the author's words
 * @param {CreateOptions} [options] `template` is a file, relative to `cwd`
 * @returns {Promise<string>} the absolute path of the new file
 */
export async function createMigration(config, name, options = {}) {
  const slug = slugOf(name)
  const extension = chooseExtension(config, options)
  const dir = config.migrationsDir
  const text = await readTemplate(config, options, extension)
  await mkdir(dir, { recursive: true })
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const existing = await readdir(dir)
    const prefix = config.sequential ? nextNumber(existing) : nextStamp(existing, attempt)
    const path = join(dir, fileName(prefix, slug, extension))
    if (await writeNew(path, text)) return path
  }
  throw new InvalidArgumentError(`No free file name for "${escapeText(name)}" in ${dir}`, {
    context: { name, migrationsDir: dir },
  })
}

/** @param {string} path @param {string} text */
async function writeNew(path, text) {
  try {
    await writeFile(path, text, { flag: 'wx' })
    return true
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false
    throw error
  }
}

/**
 * Letters and digits of every script, the rest as single dashes.
 * @param {string} name
 * @returns {string}
 */
export function slugOf(name) {
  const slug = String(name)
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
  if (slug !== '') return slug
  throw new InvalidArgumentError(
    `The migration's name must contain a letter or a digit: "${escapeText(name)}" has none`,
    { context: { name }, hint: '`mmk create add-user-index`' },
  )
}

/** @param {string} prefix @param {string} slug @param {string} extension */
function fileName(prefix, slug, extension) {
  let room = MAX_NAME_BYTES - Buffer.byteLength(`${prefix}-${extension}`)
  let kept = ''
  for (const char of slug) {
    room -= Buffer.byteLength(char)
    if (room < 0) break
    kept += char
  }
  return `${prefix}-${kept.replace(/-+$/, '')}${extension}`
}

/**
 * The UTC second `yyyyMMddHHmmss`, or the first one after it that no file has yet: files created in
 * one second would otherwise run in the order of their names.
 * @param {string[]} existing
 * @param {number} attempt
 */
function nextStamp(existing, attempt) {
  const taken = new Set(existing.map((file) => /^\d{14}(?=-)/.exec(file)?.[0]))
  let time = Date.now() + attempt * 1000
  let stamp = utcStamp(time)
  while (taken.has(stamp)) {
    time += 1000
    stamp = utcStamp(time)
  }
  return stamp
}

/** @param {number} time */
function utcStamp(time) {
  return new Date(time).toISOString().replace(/\D/g, '').slice(0, 14)
}

/**
 * One more than the highest number in the directory, as wide as it: names are compared as text.
 * @param {string[]} existing
 */
function nextNumber(existing) {
  const numbers = existing.flatMap((file) => /^\d+(?=-)/.exec(file)?.[0] ?? [])
  const highest = numbers.reduce(
    (high, text) => (BigInt(text) > BigInt(high) ? text : high),
    '0000',
  )
  const next = String(BigInt(highest) + 1n).padStart(highest.length, '0')
  if (next.length === highest.length) return next
  throw new InvalidArgumentError(
    `The numbers are used up: ${next} would run before ${highest}, because names are compared as text`,
    { context: { highest, next }, hint: 'set `sequential: false`: a time stamp sorts after them' },
  )
}

/** @param {CreateConfig} config @param {CreateOptions} options */
function chooseExtension(config, { js, ts }) {
  const kind = ts ? 'ts' : js ? 'js' : config.createExtension
  const extension = EXTENSIONS[kind].find((each) => config.fileExtensions.includes(each))
  if (extension) return extension
  throw new InvalidArgumentError(
    `A .${kind} file would not be a migration here: fileExtensions is ${config.fileExtensions.join(', ')}`,
    { context: { createExtension: kind, fileExtensions: [...config.fileExtensions] } },
  )
}

/** @param {CreateConfig} config @param {CreateOptions} options @param {string} extension */
async function readTemplate(config, { template, cwd = process.cwd() }, extension) {
  const templatePath = template ?? config.templatePath
  if (templatePath === undefined) return builtInTemplate(config.migrationsDir, extension)
  const resolved = resolve(cwd, templatePath)
  try {
    return await readFile(resolved, 'utf8')
  } catch (cause) {
    throw new MigrationFileNotFoundError(`The template can't be read: ${escapeText(resolved)}`, {
      context: { templatePath, resolved },
      cause,
    })
  }
}

/** @param {string} dir @param {string} extension */
async function builtInTemplate(dir, extension) {
  if (EXTENSIONS.ts.includes(extension)) return TS_TEMPLATE
  const esm = extension === '.mjs' || (extension === '.js' && (await usesEsModules(dir)))
  return esm ? ESM_TEMPLATE : CJS_TEMPLATE
}

const ESM_TEMPLATE = `/** @param {import('mongo-migrate-kit').MigrationContext} context */
export async function up({ db, session }) {
  // await db.collection('users').updateMany({}, { $set: { active: true } }, { session })
}

/** @param {import('mongo-migrate-kit').MigrationContext} context */
export async function down({ db, session }) {
  // await db.collection('users').updateMany({}, { $unset: { active: '' } }, { session })
}
`

const CJS_TEMPLATE = ESM_TEMPLATE.replaceAll('export async function', 'async function').concat(
  '\nmodule.exports = { up, down }\n',
)

const TS_TEMPLATE = `import type { MigrationContext } from 'mongo-migrate-kit'

export async function up({ db, session }: MigrationContext): Promise<void> {
  // await db.collection('users').updateMany({}, { $set: { active: true } }, { session })
}

export async function down({ db, session }: MigrationContext): Promise<void> {
  // await db.collection('users').updateMany({}, { $unset: { active: '' } }, { session })
}
`
