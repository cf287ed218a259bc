/**
 * Finds `mmk.config.*`, and says where it looked when there is none.
 *
 * Promises: only the working directory is looked in, so that a command never runs with the settings of
 * another project. What lies there and isn't read, or lies further up, is named and left alone.
 */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { ConfigInvalidError } from '../errors.js'
import { escapeText } from '../text.js'

/** In the order of discovery. */
const DISCOVERED = ['.ts', '.mts', '.js', '.mjs', '.cjs', '.json']
const SUPPORTED = [...DISCOVERED, '.cts']
const NAMES = DISCOVERED.map((extension) => `mmk.config${extension}`)
/** How they are told: `mmk.config.ts, .mts, …`. */
const SPOKEN = `mmk.config${DISCOVERED.join(', ')}`
/** One extension: `mmk.config.js.map` and `mmk.config.d.ts` are nobody's configuration. */
const LOOKS_LIKE_OURS = /^mmk\.config\.[a-z\d]+$/i
/** What editors and people leave behind of a file that they keep. */
const LEFTOVER = /\.(bak|orig|old|swp|tmp)$/i
/** Folders are seldom nested deeper, and on a network drive each costs a look. */
const MOST_PARENTS = 10

/**
 * @typedef {object} Found
 * @property {string | null} path absolute
 * @property {string[]} ignored absolute paths of others that could have been read
 * @property {string[]} unread names of files beside it that nobody reads
 */

/**
 * @param {string} cwd
 * @param {string | undefined} configPath what the user named
 * @returns {Found}
 */
export function findConfig(cwd, configPath) {
  if (configPath !== undefined) {
    return { path: namedConfig(cwd, configPath), ignored: [], unread: [] }
  }
  const [path = null, ...ignored] = configsIn(cwd)
  return { path, ignored, unread: unreadIn(cwd) }
}

/** @param {string} folder */
function configsIn(folder) {
  return NAMES.map((name) => join(folder, name)).filter((path) => existsSync(path))
}

/** @param {string} folder */
function unreadIn(folder) {
  return namesIn(folder).filter((name) => {
    return LOOKS_LIKE_OURS.test(name) && !LEFTOVER.test(name) && !NAMES.includes(name)
  })
}

/** @param {string} folder */
function namesIn(folder) {
  try {
    return readdirSync(folder).sort()
  } catch {
    // A folder may be entered and not listed: then nothing is known of it.
    return []
  }
}

/**
 * @param {string} cwd
 * @param {string} configPath
 */
function namedConfig(cwd, configPath) {
  const path = resolve(cwd, configPath)
  const extension = extname(path)
  if (!SUPPORTED.includes(extension)) {
    throw new ConfigInvalidError(
      `A configuration file must end in ${SUPPORTED.join(', ')}: ${path} does not`,
      { context: { path, extension } },
    )
  }
  if (existsSync(path)) return path
  throw new ConfigInvalidError(`The configuration file does not exist: ${path}`, {
    context: { path },
    hint: 'Check the path given with --config, or leave it out to find mmk.config.*',
  })
}

/**
 * For each file that looks like a configuration and isn't one.
 * @param {readonly string[]} unread
 * @returns {string[]}
 */
export function unreadNotes(unread) {
  return unread.map((name) => {
    const named = SUPPORTED.includes(extname(name)) ? ', unless --config names it' : ''
    return `${escapeText(name)} is not read${named}. What is read: ${SPOKEN}`
  })
}

/**
 * For one who has no configuration file and needs one.
 * @param {string} cwd
 * @returns {{ note: string[], hint: string | null }}
 */
export function notFound(cwd) {
  const folder = resolve(cwd)
  const note = [`No configuration file: looked in ${escapeText(folder)} for ${SPOKEN}`]
  const above = configAbove(folder)
  if (above === null) return { note, hint: null }
  const path = escapeText(above)
  const hint = `there is ${path}: run this in its folder, or name it with --config (paths in it go by the folder you are in)`
  return { note, hint }
}

/** @param {string} folder absolute @returns {string | null} the nearest one */
function configAbove(folder) {
  let below = folder
  for (let steps = 0; steps < MOST_PARENTS; steps += 1) {
    const above = dirname(below)
    if (above === below) return null
    const [path] = configsIn(above)
    if (path !== undefined) return path
    below = above
  }
  return null
}
