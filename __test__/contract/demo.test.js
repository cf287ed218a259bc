/**
 * The README's first command does what the README says.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../../scripts/process.js'
import { start } from '../helpers/child.js'

test('the demo shows two deploys colliding and three apps booting, and ends by itself', async () => {
  const demo = start(process.execPath, [join(root, 'scripts', 'demo.js')], { timeoutMs: 120_000 })

  const { code, stdout, stderr } = await demo.ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /deploy-b │ ✖ LOCK_ALREADY_HELD/)
  const booted = [...stdout.matchAll(/app-\d │ ready to serve: (\w+)/g)].map(([, did]) => did)
  assert.deepEqual(booted.sort(), ['applied', 'found', 'found'])
  assert.equal(stdout.match(/status │ .*applied/g)?.length, 3)
})
