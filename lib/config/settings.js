/**
 * The resolved configuration as the core takes it, with who we are.
 */
import { readFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { coreConnection } from './connection.js'

/** @import { Settings } from '../contract.d.ts' */
/** @import { MmkConfig } from '../../index.d.ts' */

/**
 * @param {Readonly<MmkConfig>} config
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Settings}
 */
export function toSettings(config, env = process.env) {
  const { uri, apiVersion } = coreConnection(config)
  return {
    uri,
    apiVersion,
    dbName: config.dbName,
    migrationsDir: config.migrationsDir,
    fileExtensions: [...config.fileExtensions],
    migrationsCollection: config.migrationsCollection,
    lockCollection: config.lockCollection,
    namespace: config.namespace ?? null,
    lockTtlSeconds: config.lockTTLSeconds,
    onLockLost: config.onLockLost,
    strict: config.strict,
    useTransaction: config.useTransaction,
    onInterrupted: config.onInterrupted,
    outOfOrder: config.outOfOrder,
    between: config.hooks?.beforeEach || config.hooks?.afterEach ? 'hooks' : 'nothing',
    host: hostname(),
    pid: process.pid,
    user: userName(),
    environment: env.NODE_ENV || 'development',
    service: serviceName(config, env),
  }
}

/** Containers often run as a user without an entry in the password file. */
function userName() {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? '?'}`
  }
}

/**
 * @param {Readonly<MmkConfig>} config
 * @param {NodeJS.ProcessEnv} env
 */
function serviceName({ service, migrationsDir }, env) {
  return service?.trim() || env.npm_package_name?.trim() || packageName(migrationsDir)
}

/**
 * The nearest package.json decides, even when it has no name.
 * @param {string} from
 * @returns {string | null}
 */
function packageName(from) {
  for (let dir = from, below = ''; dir !== below; below = dir, dir = dirname(dir)) {
    const text = readIfThere(join(dir, 'package.json'))
    if (text !== null) return nameIn(text)
  }
  return null
}

/** @param {string} path */
function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/** @param {string} text */
function nameIn(text) {
  try {
    const { name } = JSON.parse(text)
    return typeof name === 'string' && name.trim() !== '' ? name.trim() : null
  } catch {
    return null
  }
}
