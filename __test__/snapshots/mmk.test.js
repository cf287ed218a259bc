/** The command line itself: help, version, and mistakes that no verb sees. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { createProgram } from '../../lib/cli/program.js'
import { snapshots } from '../helpers/snapshots.js'

snapshots('mmk', {
  'no command': { args: [], command: null },
  'the help': { args: ['--help'], command: null },
  'the help of a command': { args: ['up', '--help'] },
  'a command that is none': { args: ['statsu'], command: null },
  'a flag that is none': { args: ['up', '--stepp'] },
  'a value that is none': { args: ['down', '--steps', 'two'] },
})

test('every command has its texts', () => {
  const { commands } = createProgram(() => () => {})
  assert.ok(commands.length > 0)
  for (const command of commands) {
    const file = new URL(`${command.name()}.test.js`, import.meta.url)
    assert.ok(existsSync(file), `what \`mmk ${command.name()}\` shows is kept nowhere`)
  }
})
