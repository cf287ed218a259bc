/**
 * Reads one command line, and has it carried out.
 *
 * The help and the version are answered here, with nothing loaded that they don't need; everything
 * else is for `perform.js`. `process.exitCode` says how it went.
 */
import { CommanderError } from './commander.js'
import { findVerb, flagWords, readForm, withBareJson } from './form.js'
import { claimStdout, surviveOutputErrors } from './output.js'
import { createProgram } from './program.js'

/**
 * @param {string[]} argv as in `process.argv`
 * @returns {Promise<void>}
 */
export async function main(argv) {
  const typed = withBareJson(argv.slice(2))
  const words = flagWords(typed)
  if (words.includes('--no-color')) forbidColor()
  /** @type {import('./perform.js').Asked[]} */
  const asked = []
  const program = createProgram((verb) => (...args) => {
    const [options, command] = args.splice(-2)
    asked.push({ verb, args, options, globals: command.optsWithGlobals(), program })
  })
  const documents = await documentsFor(words, findVerb(program, words))
  surviveOutputErrors()
  const mistake = parse(program, typed)
  if (mistake?.exitCode === 0) return
  const { perform, refuse } = await import('./perform.js')
  const told = { documents, utc: words.includes('--utc'), verbose: words.includes('--verbose') }
  if (mistake) refuse(mistake, told)
  else await perform(asked[0], told)
}

/** For us and for the bodies that we run. */
function forbidColor() {
  process.env.NO_COLOR = '1'
  delete process.env.FORCE_COLOR
}

/**
 * @param {readonly string[]} words
 * @param {string | null} verb
 * @returns {Promise<import('./document.js').Documents | null>} who makes the one document, if JSON is
 *   wanted; stdout is theirs alone then
 */
async function documentsFor(words, verb) {
  const form = readForm(words, verb)
  if (form === null) return null
  const { createDocuments } = await import('./document.js')
  const documents = createDocuments(form, verb)
  claimStdout(documents)
  return documents
}

/**
 * @param {import('commander').Command} program
 * @param {string[]} typed
 * @returns {import('commander').CommanderError | null} what is wrong, with exit code 0 if the help or
 *   the version was asked for, and printed
 */
function parse(program, typed) {
  try {
    program.parse(typed, { from: 'user' })
    return null
  } catch (error) {
    if (error instanceof CommanderError) return error
    throw error
  }
}
