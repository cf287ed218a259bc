/**
 * Which features the size of the addon is asked about, read from our own manifest.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { featuresOf, without } from '../../bench/features.js'
import { root } from '../../scripts/process.js'

const manifest = await readFile(join(root, 'Cargo.toml'), 'utf8')

test('the features of the driver are found, without those that it needs', () => {
  const found = featuresOf(manifest)
  assert.ok(found.includes('rustls-tls') && found.includes('zstd-compression'), found.join())
  assert.ok(!found.some((name) => /^(compat|bson)-/.test(name)), found.join())
})

test('a feature is taken out of the manifest, and nothing else is', () => {
  for (const feature of featuresOf(manifest)) {
    const less = without(manifest, feature)
    assert.ok(!featuresOf(less).includes(feature), feature)
    assert.equal(featuresOf(less).length, featuresOf(manifest).length - 1)
    assert.ok(manifest.length - less.length < feature.length + 10)
  }
})
