import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadMigration } from '../../lib/modules.js'
import { folder } from './folder.js'

/** @type {[kind: string, name: string, source: (n: number) => string][]} */
const KINDS = [
  ['an ES module', 'a.mjs', (n) => `export const up = () => ${n}`],
  ['a CommonJS module', 'b.cjs', (n) => `exports.up = () => ${n}`],
  ['TypeScript', 'c.ts', (n) => `enum N { Is = ${n} }\nexport const up = (): number => N.Is`],
  ['ES syntax in a CommonJS package', 'd.js', (n) => `export const up = () => ${n}`],
]

const COUNT = '\nglobalThis.evaluations = (globalThis.evaluations ?? 0) + 1\n'
const evaluations = () => /** @type {any} */ (globalThis).evaluations ?? 0

/** @param {string} path @param {{ fresh?: boolean }} [options] */
async function resultOf(path, options) {
  const { up } = await loadMigration(path, options)
  return up(/** @type {any} */ ({}), /** @type {any} */ ({}))
}

for (const [kind, name, source] of KINDS) {
  describe(`${kind} that is loaded again`, () => {
    it('runs its new code after every edit', async (t) => {
      const dir = await folder(t, { 'package.json': '{ "type": "commonjs" }' })
      const path = join(dir, name)
      for (const edit of [1, 2, 3, 1]) {
        await writeFile(path, source(edit))
        assert.equal(await resultOf(path), edit)
      }
    })

    it('is evaluated again only when it is wanted fresh', async (t) => {
      const dir = await folder(t, {
        'package.json': '{ "type": "commonjs" }',
        [name]: source(1) + COUNT,
      })
      const path = join(dir, name)
      const before = evaluations()
      await resultOf(path)
      await resultOf(path)
      assert.equal(evaluations() - before, 1)
      await resultOf(path, { fresh: true })
      await resultOf(path)
      assert.equal(evaluations() - before, 2)
    })
  })
}
