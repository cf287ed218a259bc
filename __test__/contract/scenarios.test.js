/**
 * docs/scenarios.md against the names of the tests: every scenario has a test where it says so, or a
 * reason why it has none; and no test claims one that is not listed.
 */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../../scripts/process.js'

const kinds = [
  ...['ACQ', 'LEASE', 'REL', 'BOOT', 'CONC', 'NAT', 'IMP'],
  ...['ORD', 'SUM', 'LOG', 'TXN', 'AUTH', 'DRV'],
  ...['CONN', 'MOD', 'CFG', 'PKG'],
]
const id = `(?:${kinds.join('|')})-\\d\\d`
const row = new RegExp(`^\\| (${id}) \\| (.+) \\| \\[.+\\]\\((https://\\S+)\\) \\| (.+) \\|$`, 'gm')

/** @returns {Promise<{ id: string, link: string, verdict: string }[]>} */
async function scenarios() {
  const text = await readFile(join(root, 'docs', 'scenarios.md'), 'utf8')
  return [...text.matchAll(row)].map(([, name = '', , link = '', verdict = '']) => {
    return { id: name, link, verdict }
  })
}

/** @returns {Promise<Map<string, Set<string>>>} ids in the titles of tests, by file under __test__ */
async function claims() {
  const folder = join(root, '__test__')
  const files = (await readdir(folder, { recursive: true }))
    .filter((file) => file.endsWith('.test.js'))
    .map((file) => file.replaceAll('\\', '/'))
  const found = new Map()
  for (const file of files) {
    const text = await readFile(join(folder, file), 'utf8')
    const titles = text.match(/(?:\btest\(|\bname = )\s*(['"`])(?:\\.|(?!\1).)*\1/gs) ?? []
    found.set(file, new Set(titles.flatMap((title) => title.match(new RegExp(id, 'g')) ?? [])))
  }
  return found
}

test('every scenario is listed once, and none is left out of the numbering', async () => {
  const ids = (await scenarios()).map((each) => each.id)

  for (const kind of kinds) {
    const numbers = ids.filter((each) => each.startsWith(`${kind}-`)).map((each) => each.slice(-2))
    const expected = numbers.map((_, index) => `${index + 1}`.padStart(2, '0'))
    assert.ok(numbers.length > 0, kind)
    assert.deepEqual(numbers, expected, kind)
  }
})

test('every scenario has a test in the file that its verdict names, or a reason why it has none', async () => {
  const byFile = await claims()

  for (const { id: name, verdict } of await scenarios()) {
    const files = verdict.match(/[\w-]+\/[\w-]+\.test\.js/g) ?? []
    if (verdict.startsWith('not run here: ')) {
      assert.deepEqual(files, [], name)
      continue
    }
    assert.match(verdict, /^holds: /, name)
    assert.ok(files.length > 0, `${name} names no test`)
    for (const file of files) {
      assert.ok(byFile.get(file)?.has(name), `${file} has no test whose name carries ${name}`)
    }
  }
})

test('no test carries the id of a scenario that names another file, or of none', async () => {
  const listed = new Map((await scenarios()).map(({ id: name, verdict }) => [name, verdict]))

  for (const [file, ids] of await claims()) {
    for (const name of ids) {
      assert.ok(listed.get(name)?.includes(file), `${name} does not name ${file}`)
    }
  }
})
