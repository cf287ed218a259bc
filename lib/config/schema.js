/**
 * The keys of the configuration: the one table of names, defaults, sources and checks.
 */
import * as check from './checks.js'
import { MAX_MS, MAX_TTL_SECONDS } from './limits.js'

/**
 * @typedef {object} Option
 * @property {string} key
 * @property {check.Check} check
 * @property {unknown} [fallback] the default
 * @property {string} [env] environment variable
 * @property {'boolean' | 'integer'} [envType] what its text stands for; otherwise it is text
 * @property {string} [flag] how it is set on the command line
 * @property {true} [secret] a URI: shown without its credentials
 */

/** All that we can load, in the order in which names are looked up. */
export const FILE_EXTENSIONS = ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts']

/** @type {readonly Option[]} */
export const OPTIONS = [
  { key: 'uri', env: 'MMK_URI', flag: '--uri <uri>', check: check.uri, secret: true },
  { key: 'lockUri', env: 'MMK_LOCK_URI', check: check.uri, secret: true },
  { key: 'dbName', env: 'MMK_DB', flag: '--db <name>', check: check.dbName },
  {
    key: 'migrationsDir',
    fallback: './migrations',
    env: 'MMK_MIGRATIONS_DIR',
    flag: '--dir <path>',
    check: check.text,
  },
  {
    key: 'migrationsCollection',
    fallback: '_mmk_migrations',
    env: 'MMK_COLLECTION',
    check: check.collection,
  },
  {
    key: 'lockCollection',
    fallback: '_mmk_locks',
    env: 'MMK_LOCK_COLLECTION',
    check: check.collection,
  },
  {
    key: 'lockTTLSeconds',
    fallback: 60,
    env: 'MMK_LOCK_TTL',
    envType: 'integer',
    flag: '--lock-ttl <seconds>',
    check: check.integer(1, MAX_TTL_SECONDS, 'seconds'),
  },
  { key: 'namespace', env: 'MMK_NAMESPACE', flag: '--namespace <name>', check: check.text },
  {
    key: 'strict',
    fallback: false,
    env: 'MMK_STRICT',
    envType: 'boolean',
    flag: '--strict',
    check: check.boolean,
  },
  {
    key: 'useTransaction',
    fallback: false,
    env: 'MMK_USE_TRANSACTION',
    envType: 'boolean',
    check: check.boolean,
  },
  {
    key: 'transactionRetryTimeoutMs',
    fallback: 120_000,
    env: 'MMK_TRANSACTION_RETRY_TIMEOUT_MS',
    envType: 'integer',
    check: check.integer(0, MAX_MS, 'milliseconds'),
  },
  { key: 'fileExtensions', fallback: FILE_EXTENSIONS, check: check.extensions },
  {
    key: 'createExtension',
    fallback: 'js',
    env: 'MMK_CREATE_EXTENSION',
    check: check.oneOf(['js', 'ts']),
  },
  {
    key: 'sequential',
    fallback: false,
    env: 'MMK_SEQUENTIAL',
    envType: 'boolean',
    check: check.boolean,
  },
  { key: 'templatePath', check: check.text },
  { key: 'service', env: 'MMK_SERVICE', check: check.text },
  {
    key: 'onLockHeld',
    fallback: 'throw',
    env: 'MMK_ON_LOCK_HELD',
    check: check.oneOf(['throw', 'wait']),
  },
  {
    key: 'lockWaitTimeoutMs',
    env: 'MMK_LOCK_WAIT_TIMEOUT_MS',
    envType: 'integer',
    check: check.integer(0, MAX_MS, 'milliseconds'),
  },
  {
    key: 'onLockLost',
    fallback: 'stop',
    env: 'MMK_ON_LOCK_LOST',
    check: check.oneOf(['stop', 'warn']),
  },
  {
    key: 'onInterrupted',
    fallback: 'retry',
    env: 'MMK_ON_INTERRUPTED',
    check: check.oneOf(['retry', 'stop']),
  },
  {
    key: 'outOfOrder',
    fallback: 'warn',
    env: 'MMK_OUT_OF_ORDER',
    check: check.oneOf(['allow', 'warn', 'error']),
  },
  { key: 'client', check: check.client },
  { key: 'mongoose', check: check.mongoose },
  { key: 'mongoClientOptions', check: check.object },
  { key: 'hooks', check: check.hooks },
  { key: 'logger', check: check.logger },
  { key: 'onEvent', check: check.func },
]

export const KEYS = OPTIONS.map((option) => option.key)
export const ENV_NAMES = OPTIONS.flatMap((option) => option.env ?? [])
