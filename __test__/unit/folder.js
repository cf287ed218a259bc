/**
 * A temporary folder for one test, with files written from strings.
 */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * @param {import('node:test').TestContext} t
 * @param {Record<string, string>} files path in the folder to text
 * @returns {Promise<string>} its path
 */
export async function folder(t, files) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'mmk-unit-')))
  t.after(() => rm(root, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  return root
}
