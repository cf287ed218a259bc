/**
 * Which module system Node reads a plain `.js` file with: the nearest `package.json` decides, as in
 * Node itself, and a directory that doesn't exist yet is judged by its parents.
 */
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * @param {string} dir absolute
 * @returns {Promise<boolean>} is a `.js` file there an ES module?
 */
export async function usesEsModules(dir) {
  const text = await readFile(join(dir, 'package.json'), 'utf8').catch(() => null)
  if (text !== null) return typeOf(text) === 'module'
  const parent = dirname(dir)
  return parent === dir ? false : usesEsModules(parent)
}

/** @param {string} text */
function typeOf(text) {
  try {
    return JSON.parse(text)?.type
  } catch {
    // A package.json that npm can't read either says nothing about modules.
    return undefined
  }
}
