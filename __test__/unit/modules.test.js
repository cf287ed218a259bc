import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadMigration, locateFile } from '../../lib/modules.js'
import { folder } from './folder.js'

const PACKAGES = {
  'an ES package': '{ "type": "module" }',
  'a CommonJS package': '{ "type": "commonjs" }',
  'a package without a type': '{}',
}

const SIBLING = `
  export enum Colour { Red = 'red' }
  export interface Thing { colour: Colour }
`

/** TypeScript that Node doesn't strip: enums, parameter properties, an import without extension. */
const FULL_TYPESCRIPT = `
  import { Colour, Thing } from './sibling'
  import type { Stats } from 'node:fs'
  enum Local { Three = 3 }
  class Point { constructor(public readonly x: number) {} }
  export const description: string = 'all of it'
  export async function up(thing: Thing, stats?: Stats): Promise<string> {
    return \`\${Colour.Red} \${Local.Three} \${new Point(7).x}\`
  }
`

const CJS_TYPESCRIPT = `
  import path = require('node:path')
  enum Local { Three = 3 }
  export = { up: async (): Promise<string> => path.posix.sep + Local.Three }
`

/** @type {Record<string, [file: string, source: string, result: string]>} */
const LOADABLE = {
  'named exports': ['a.js', `export const up = async () => 'ran'`, 'ran'],
  'a default object': ['a.js', `export default { up: async () => 'ran' }`, 'ran'],
  'a default object that uses this': [
    'a.js',
    `export default { word: 'ran', async up() { return this.word } }`,
    'ran',
  ],
  'module.exports': ['a.js', `module.exports = { up: async () => 'ran' }`, 'ran'],
  'CommonJS with require and __dirname': [
    'a.js',
    `const { basename } = require('node:path')
     exports.up = async () => basename(__filename) + typeof __dirname`,
    'a.jsstring',
  ],
  'exports.default of a compiler': [
    'a.cjs',
    `Object.defineProperty(exports, '__esModule', { value: true })
     exports.default = { up: async () => 'ran' }`,
    'ran',
  ],
  '.mjs': ['a.mjs', `export const up = async () => 'ran'`, 'ran'],
  '.cjs': ['a.cjs', `exports.up = async () => 'ran'`, 'ran'],
  'full TypeScript in .ts': ['a.ts', FULL_TYPESCRIPT, 'red 3 7'],
  'full TypeScript in .mts': ['a.mts', FULL_TYPESCRIPT, 'red 3 7'],
  'CommonJS TypeScript in .cts': ['a.cts', CJS_TYPESCRIPT, '/3'],
  'a file with a byte order mark': ['a.js', `\uFEFFexport const up = async () => 'ran'`, 'ran'],
  'a name full of odd characters': ['a b#%20?ü.mjs', `export const up = async () => 'ran'`, 'ran'],
}

describe('a migration file', () => {
  for (const [where, manifest] of Object.entries(PACKAGES)) {
    for (const [what, [file, source, result]] of Object.entries(LOADABLE)) {
      it(`is loaded from ${where}: ${what}`, async (t) => {
        const files = { 'package.json': manifest, 'sibling.ts': SIBLING, [file]: source }
        const { up } = await loadMigration(join(await folder(t, files), file))
        assert.equal(await up(/** @type {any} */ ({}), /** @type {any} */ (null)), result)
      })
    }

    for (const [file, source] of Object.entries({
      'bad.js': `const one = 1\nexport const up = async () => {\n  const two = ;\n}\n`,
      'bad.cjs': `const one = 1\nexports.up = async () => {\n  const two = ;\n}\n`,
      'bad.ts': `const one: number = 1\nexport const up = async () => {\n  const two: = 2\n}\n`,
    })) {
      it(`with a syntax error is refused by file and line in ${where}: ${file}`, async (t) => {
        const root = await folder(t, { 'package.json': manifest, [file]: source })
        await assert.rejects(loadMigration(join(root, file)), (/** @type {any} */ error) => {
          assert.equal(error.code, 'MIGRATION_LOAD_FAILED')
          assert.ok(error.message.startsWith(`Could not load ${file}: `), error.message)
          assert.match(error.message, new RegExp(`${file}:3`))
          assert.ok(error.context.location.startsWith(`${join(root, file)}:3`))
          assert.ok(error.cause instanceof Error)
          return true
        })
      })
    }
  }

  it('shows what else it says about itself', async (t) => {
    const source = `
      export const up = () => {}, down = () => {}
      export const description = 'why', useTransaction = true, onInterrupted = 'stop'`
    const migration = await loadMigration(join(await folder(t, { 'a.mjs': source }), 'a.mjs'))
    assert.equal(typeof migration.down, 'function')
    const { description, useTransaction, onInterrupted } = migration
    assert.deepEqual([description, useTransaction, onInterrupted], ['why', true, 'stop'])
  })

  it('may have no down', async (t) => {
    const root = await folder(t, {
      'a.mjs': 'export const up = () => {}',
      'b.cjs': 'exports.up = () => {}; exports.down = null',
    })
    assert.ok(!('down' in (await loadMigration(join(root, 'a.mjs')))))
    assert.ok(!('down' in (await loadMigration(join(root, 'b.cjs')))))
  })

  it('runs its top level once, even when that throws', async (t) => {
    const key = `mmk-test-${process.pid}-loads`
    const source = `globalThis['${key}'] = (globalThis['${key}'] ?? 0) + 1\nthrow new Error('boom')`
    const root = await folder(t, { 'a.mjs': source })
    await assert.rejects(loadMigration(join(root, 'a.mjs')), (/** @type {any} */ error) => {
      assert.equal(error.code, 'MIGRATION_LOAD_FAILED')
      assert.match(error.message, /Could not load a\.mjs: Error: boom \(.*a\.mjs:2:\d+\)/)
      assert.equal(error.cause.message, 'boom')
      return true
    })
    assert.equal(Reflect.get(globalThis, key), 1)
  })

  it('that imports what is not there is refused by name', async (t) => {
    const root = await folder(t, {
      'a.mjs': `import 'no-such-package-anywhere'\nexport const up = () => {}`,
      'b.mjs': `import { nothing } from './c.mjs'\nexport const up = () => nothing`,
      'c.mjs': 'export const something = 1',
    })
    await assert.rejects(loadMigration(join(root, 'a.mjs')), {
      code: 'MIGRATION_LOAD_FAILED',
      message: /a\.mjs.*no-such-package-anywhere/,
    })
    await assert.rejects(loadMigration(join(root, 'b.mjs')), {
      code: 'MIGRATION_LOAD_FAILED',
      message: /b\.mjs.*does not provide an export named 'nothing'.*b\.mjs:1/,
    })
  })

  it('that is gone is not found', async (t) => {
    const path = join(await folder(t, {}), 'gone.js')
    await assert.rejects(loadMigration(path), {
      code: 'MIGRATION_FILE_NOT_FOUND',
      context: { filepath: path },
    })
  })
})

/** @type {[what: string, source: string, said: RegExp, missing: string[]][]} */
const UNUSABLE = [
  ['without up', 'export const down = () => {}', /exports no function `up`/, ['up']],
  ['without any export', 'const a = 1', /exports no function `up`/, ['up']],
  [
    'with an up that is no function',
    'export const up = 3',
    /`up` must be a function, not number/,
    ['up'],
  ],
  [
    'with a down that is no function',
    `export const up = () => {}, down = 'x'`,
    /`down` must be/,
    [],
  ],
  [
    'that calls back',
    'export const up = (db, client, next) => next()',
    /`up` takes 3 parameters.*promise/,
    [],
  ],
  [
    'with a bad description',
    'export const up = () => {}, description = 3',
    /`description` must be a string/,
    [],
  ],
  [
    'with a bad useTransaction',
    `export const up = () => {}, useTransaction = 'yes'`,
    /`useTransaction` must be a boolean/,
    [],
  ],
  [
    'with a bad onInterrupted',
    `export const up = () => {}, onInterrupted = 'maybe'`,
    /"retry" or "stop"/,
    [],
  ],
]

describe('an unusable migration', () => {
  for (const [what, source, said, missing] of UNUSABLE) {
    it(`is refused by name: one ${what}`, async (t) => {
      const path = join(await folder(t, { 'a.mjs': source }), 'a.mjs')
      await assert.rejects(loadMigration(path), (/** @type {any} */ error) => {
        assert.equal(error.code, 'MIGRATION_INVALID_EXPORT')
        assert.match(error.message, /^a\.mjs is not a usable migration/)
        assert.match(error.message, said)
        assert.equal(error.context.filepath, path)
        assert.deepEqual(error.context.missing, missing)
        return true
      })
    })
  }
})

describe('a file whose name is stored decomposed', () => {
  it('is found by its composed name', async (t) => {
    const dir = await folder(t, { 'e\u0301te\u0301.js': `export const up = async () => 'ran'` })
    const path = await locateFile(dir, '\u00e9t\u00e9.js')
    const { up } = await loadMigration(path)
    assert.equal(await /** @type {any} */ (up)(), 'ran')
  })
})
