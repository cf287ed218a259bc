/**
 * Which output a command line asks for. Read before it is parsed, because what is wrong with it has
 * to be said in that very form.
 */

/** @import { Command } from 'commander' */
/** @import { Form } from './document.js' */

/** Of a `--json` that names none. */
const FIRST_VERSION = '1'

/**
 * @param {readonly string[]} argv
 * @returns {readonly string[]} what may be flags: up to a `--`
 */
export function flagWords(argv) {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? undefined : end)
}

/**
 * `mmk up --json 0001-a.js` must not take the file for a version: a bare flag gets its value here.
 * @param {readonly string[]} argv
 */
export function withBareJson(argv) {
  const { length } = flagWords(argv)
  return argv.map((word, index) => {
    return word === '--json' && index < length ? `--json=${FIRST_VERSION}` : word
  })
}

/**
 * The verb, without the parser: the first word that is one, and no value of a global flag.
 * @param {Command} program
 * @param {readonly string[]} words
 * @returns {string | null}
 */
export function findVerb({ commands, options }, words) {
  const names = commands.map((command) => command.name())
  const takesNext = (/** @type {string} */ word) => {
    return options.some(({ required, long }) => required && long === word)
  }
  return words.find((word, at) => names.includes(word) && !takesNext(words[at - 1])) ?? null
}

/**
 * @param {readonly string[]} words with no bare `--json`
 * @param {string | null} verb a bare `--json` of `init` is the format of its file
 * @returns {Form | null}
 */
export function readForm(words, verb) {
  if (words.includes('--json-lines')) return 'lines'
  if (words.includes('--json=2')) return 2
  if (verb === 'init') return null
  // A version that there isn't is a usage error, which has to have some form.
  return words.some((word) => word.startsWith('--json=')) ? 1 : null
}
