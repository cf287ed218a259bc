/**
 * What index.d.ts promises is what lib/index.js gives, from both kinds of module.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import * as exported from 'mongo-migrate-kit'
import { root } from '../../scripts/process.js'

const declaration = /^export (?:declare )?(?:abstract )?(?:function|class|const) (\w+)/gm

test('every value that index.d.ts declares is exported, and nothing else', async () => {
  const types = await readFile(join(root, 'index.d.ts'), 'utf8')
  const declared = new Set([...types.matchAll(declaration)].map(([, name]) => name))
  assert.deepEqual(Object.keys(exported).sort(), [...declared].sort())
})

test('require gives the same objects as import', () => {
  const required = createRequire(import.meta.url)('mongo-migrate-kit')
  assert.deepEqual({ ...required }, { ...exported })
})
