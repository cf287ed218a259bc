import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { neededVerbs } from '../../lib/cli/form.js'
import { createProgram, VERB_NAMES } from '../../lib/cli/program.js'

/** @param {string} line */
const needed = (line) => neededVerbs(createProgram(), VERB_NAMES, line.split(' ').filter(Boolean))

describe('the verbs that a command line needs', () => {
  it('are the one that it names', () => {
    for (const line of [
      'up',
      'up 1-one.js --to x',
      '--db down up',
      '--uri mongodb://h up --json=1',
    ]) {
      assert.deepEqual(needed(line), ['up'], line)
    }
  })

  it('are none for the version', () => {
    for (const line of ['--version', '-V', 'up --version']) assert.deepEqual(needed(line), [], line)
    assert.deepEqual(needed('--db --version up'), ['up'])
  })

  it('are all for the help, for a mistake, and for what is about them all', () => {
    for (const line of [
      '',
      '--help',
      'up -h',
      'help up',
      'statsu',
      'statsu up',
      'completion bash',
    ]) {
      assert.deepEqual(needed(line), VERB_NAMES, line)
    }
  })
})
