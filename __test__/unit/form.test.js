import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findVerb, readForm } from '../../lib/cli/form.js'
import { createProgram } from '../../lib/cli/program.js'

const program = createProgram(() => () => {})
/** @param {string} line */
const found = (line) => findVerb(program, line.split(' '))

describe('the verb of a command line', () => {
  it('is the first word that is one', () => {
    for (const line of ['up', 'up 1-one.js --to x', 'statsu up', '--verbose up down', 'help up']) {
      assert.equal(found(line), 'up', line)
    }
  })

  it('is no value of a global flag', () => {
    assert.equal(found('--db down up'), 'up')
    assert.equal(found('--uri mongodb://h up --json=1'), 'up')
    assert.equal(found('--dir up'), null)
  })

  it('is none where nothing names one', () => {
    for (const line of ['', '--version', 'statsu']) assert.equal(found(line), null, line)
  })
})

describe('the form of the output', () => {
  it('is what the flags say, and text without them', () => {
    assert.equal(readForm(['up'], 'up'), null)
    assert.equal(readForm(['up', '--json=1'], 'up'), 1)
    assert.equal(readForm(['up', '--json=2'], 'up'), 2)
    assert.equal(readForm(['up', '--json=2', '--json-lines'], 'up'), 'lines')
  })

  it('of a version that there is not is the first, so that the mistake can be told', () => {
    assert.equal(readForm(['up', '--json=7'], 'up'), 1)
  })

  it('of `init --json` is text: there it is the format of the file', () => {
    assert.equal(readForm(['init', '--json=1'], 'init'), null)
    assert.equal(readForm(['init', '--json=2'], 'init'), 2)
  })
})
