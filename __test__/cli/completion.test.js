import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { capture } from '../../scripts/process.js'
import { project } from '../helpers/project.js'

const shells = /** @type {const} */ (['bash', 'zsh', 'fish'])
/** @type {Map<string, string>} shell → file with its script */
const scripts = new Map()
/** @type {string} */
let folder

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mmk-completion-'))
  for (const shell of shells) {
    const { code, stdout, stderr } = await capture(process.execPath, [
      'bin/mmk.js',
      'completion',
      shell,
    ])
    assert.equal(code, 0, stderr)
    scripts.set(shell, join(folder, `mmk.${shell}`))
    await writeFile(join(folder, `mmk.${shell}`), stdout)
  }
})
after(() => rm(folder, { recursive: true }))

for (const shell of shells) {
  test(`the script for ${shell} is one that ${shell} can read, where it is installed`, async (t) => {
    const { code, stderr } = await capture(shell, ['-n', scripts.get(shell) ?? ''])
    if (code === 127) return t.skip(`${shell} is not installed`)
    assert.equal(code, 0, stderr)
    assert.equal(stderr, '')
  })
}

/**
 * What bash offers for the last of these words.
 * @param {string[]} words
 * @param {string} cwd
 */
async function offered(words, cwd) {
  const program = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mmk; printf '%s\\n' "\${COMPREPLY[@]}"`
  const args = ['-c', program, 'bash', scripts.get('bash') ?? '', ...words]
  const { code, stdout, stderr } = await capture('bash', args, { cwd })
  assert.equal(code, 0, stderr)
  return stdout.split('\n').filter(Boolean)
}

test('bash completes commands, flags, and the names of migrations, whatever is in them', async (t) => {
  if ((await capture('bash', ['--version'])).code === 127) return t.skip('bash is not installed')
  const names = ['0001-a b.js', '0002-$(touch owned).js', '0003-*.js']
  const app = await project(t, Object.fromEntries(names.map((name) => [name, ''])))

  assert.deepEqual(await offered(['mmk', 'sta'], app.folder), ['status'])
  assert.deepEqual(await offered(['mmk', 'status', '--ch'], app.folder), ['--check'])
  assert.deepEqual(await offered(['mmk', '--uri', 'mongodb://h', 'dry-run', 'd'], app.folder), [
    'down',
  ])
  assert.deepEqual(await offered(['mmk', 'up', '000'], app.folder), names)
  const elsewhere = ['mmk', '--dir', app.migrationsDir, 'mark', '0003']
  assert.deepEqual(await offered(elsewhere, tmpdir()), ['0003-*.js'])
  assert.deepEqual(await offered(['mmk', 'list', '--db', ''], app.folder), [])
})

test('a shell that there is no script for is named, with those that there are', async () => {
  const { code, stderr } = await capture(process.execPath, ['bin/mmk.js', 'completion', 'tcsh'])
  assert.equal(code, 2)
  assert.match(stderr, /tcsh.*bash, zsh, fish/)
})
