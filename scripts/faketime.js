/**
 * Finds libfaketime, with which a process of a test gets a wrong wall clock: `MMK_TEST_FAKETIME`,
 * then where distributions put it, then a copy of our own under .cache/, which on Debian and Ubuntu
 * is downloaded once and unpacked without installing anything.
 *
 * Without it the tests that need it are skipped and say so; nothing else depends on it.
 */
import { access, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { capture, root } from './process.js'

const library = join('faketime', 'libfaketimeMT.so.1')
const systemFolders = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/lib64',
  '/usr/lib',
]
const cache = join(root, '.cache', 'faketime')

/** @returns {Promise<string | null>} the library's path */
export async function ensureFaketime() {
  if (process.platform !== 'linux') return null
  return process.env.MMK_TEST_FAKETIME ?? (await found()) ?? (await download())
}

async function found() {
  const unpacked = join(cache, 'usr', 'lib')
  const own = (await readdir(unpacked).catch(() => [])).map((name) => join(unpacked, name))
  for (const folder of [...systemFolders, ...own]) {
    const path = join(folder, library)
    const readable = await access(path).then(
      () => true,
      () => false,
    )
    if (readable) return path
  }
  return null
}

async function download() {
  await mkdir(cache, { recursive: true })
  const fetch = () => capture('apt-get', ['download', 'libfaketime'], { cwd: cache })
  let { code } = await fetch()
  if (code !== 0 && code !== 127) {
    // A system that was just installed has no list of packages yet.
    await capture('apt-get', ['update'])
    code = (await fetch()).code
  }
  if (code !== 0) return null
  const packed = (await readdir(cache)).find((name) => name.endsWith('.deb'))
  if (packed) await capture('dpkg-deb', ['-x', join(cache, packed), cache])
  return found()
}
