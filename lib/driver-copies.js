/**
 * The copies of the Node driver that an app may have, and which of them is meant.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { DependencyMissingError } from './errors.js'

/** @import { MongoClient } from 'mongodb' */
/** @import { MmkConfig } from '../index.d.ts' */

/** @typedef {typeof import('mongodb')} Driver */

/**
 * Every copy of the driver that may be meant, the app's own first.
 * @param {Readonly<MmkConfig>} config
 * @returns {Driver[]}
 */
export function findDrivers({ migrationsDir, mongoose }) {
  const places = [join(migrationsDir, '_'), join(process.cwd(), '_'), import.meta.url]
  const found = places.map(requireDriver).filter((driver) => driver !== null)
  if (mongoose?.mongo?.MongoClient) found.push(mongoose.mongo)
  if (found.length > 0) return found
  throw new DependencyMissingError('The MongoDB driver is not installed', {
    context: { package: 'mongodb', searched: places.slice(0, 2) },
    hint: 'npm install mongodb',
  })
}

/**
 * @param {string} from
 * @returns {Driver | null}
 */
function requireDriver(from) {
  const require = createRequire(from)
  try {
    require.resolve('mongodb')
  } catch {
    return null
  }
  return require('mongodb')
}

/**
 * A client of the user's may come from a copy that only the app can resolve; it is loaded, though.
 * @param {MongoClient} client
 * @param {Driver[]} candidates
 */
export function driverOf(client, candidates) {
  const { cache } = createRequire(import.meta.url)
  const loaded = Object.keys(cache)
    .filter((path) => /[\\/]mongodb[^\\/]*[\\/]lib[\\/]index\.js$/.test(path))
    .map((path) => cache[path]?.exports)
  const all = [...candidates, ...loaded].filter((driver) => driver?.MongoClient)
  return all.find(({ MongoClient }) => client instanceof MongoClient) ?? candidates[0]
}
