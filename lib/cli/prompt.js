/**
 * Yes-or-no questions on a terminal. `y` and `yes` agree; everything else, the end of the input
 * included, declines. Where nobody can answer nothing is asked: a pipeline would wait for ever.
 *
 * Node's own readline is the library: a question that takes one word needs no dependency.
 */
import { createInterface } from 'node:readline'
import { InvalidArgumentError } from '../errors.js'
import { EXIT } from './exit.js'
import { canAsk, printNote, printResult } from './output.js'

/**
 * Asks before something that can't be taken back.
 * @param {import('./perform.js').Cli} cli
 * @param {string} question
 * @returns {Promise<number | null>} `null`: agreed; otherwise the exit status to end with
 */
export async function askFirst(cli, question) {
  if (cli.json || !canAsk()) {
    throw new InvalidArgumentError('this has to be confirmed, and there is no terminal to ask on', {
      hint: 'add --yes to do it without being asked',
    })
  }
  const answer = await confirm(question)
  if (answer === 'yes') return null
  printResult('Aborted')
  return answer === 'no' ? EXIT.ok : EXIT.interrupted
}

/**
 * @param {string} question
 * @returns {Promise<'yes' | 'no' | 'interrupted'>}
 */
function confirm(question) {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  return new Promise((resolve) => {
    terminal.once('SIGINT', () => {
      resolve('interrupted')
      terminal.close()
    })
    terminal.once('close', () => {
      // The cursor still stands behind the question.
      printNote('')
      resolve('no')
    })
    terminal.question(question, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()) ? 'yes' : 'no')
      terminal.removeAllListeners('close')
      terminal.close()
    })
  })
}
