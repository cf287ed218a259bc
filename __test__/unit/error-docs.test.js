import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { EXIT_BY_CODE } from '../../lib/cli/exit.js'
import { errorOf } from '../../lib/errors.js'

const read = (/** @type {string} */ path) =>
  readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The anchor that a heading gets from whatever renders Markdown. @param {string} heading */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

const page = await read('docs/errors.md')
const parts = page.split(/^## (.*)\n/m).slice(1)
const sections = new Map(parts.flatMap((part, at) => (at % 2 === 0 ? [[part, parts[at + 1]]] : [])))

describe('docs/errors.md', () => {
  it('has a section for each code that the types name, and a code for each section', async () => {
    const types = await read('index.d.ts')
    const [, union] = /export type MmkErrorCode =\n((?: {2}\| '\w+'\n)+)/.exec(types) ?? []
    const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code]) => code)
    assert.deepEqual([...sections.keys()].sort(), codes.sort())
    assert.deepEqual(Object.keys(EXIT_BY_CODE).sort(), codes)
  })

  it('knows every code that the core gives', async () => {
    const files = ['src/error.rs', 'src/error/import.rs', 'src/plan/problem.rs']
    const source = (await Promise.all(files.map(read))).join('\n')
    const codes = new Set([...source.matchAll(/"([A-Z]+(?:_[A-Z]+)*)"/g)].map(([, code]) => code))
    assert.ok(codes.size > 15, `${codes.size} found`)
    for (const code of codes) assert.ok(sections.has(code), code)
  })

  it('says of each what it means, what is true of the database and what to do', () => {
    for (const [code, text] of sections) {
      assert.match(text, /^\n[^*\s]/, `${code}: what it means`)
      assert.equal(text.match(/^\*\*Database:\*\* \S/gm)?.length, 1, `${code}: the database`)
      assert.equal(text.match(/^\*\*Do:\*\* \S/gm)?.length, 1, `${code}: what to do`)
    }
  })

  it('is where the error of each code says that it is explained', async () => {
    const { files } = JSON.parse(await read('package.json'))
    assert.ok(files.includes('docs'), 'it is in the package')
    for (const code of sections.keys()) {
      const { docsUrl } = errorOf(code, 'so it is', {})
      assert.equal(docsUrl, `node_modules/mongo-migrate-kit/docs/errors.md#${anchorOf(code)}`)
    }
  })
})
