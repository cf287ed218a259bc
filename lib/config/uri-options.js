/**
 * The one table of connection options, and what becomes of each on its way to the core's driver.
 *
 * Two drivers read a configuration: the app's own (Node) for the bodies, and the core's for the lock
 * and the changelog. An option reaches both, or concerns the bodies' client alone, or is refused here.
 * `__test__/unit/uri.test.js` holds the table against what the drivers really do.
 */

/**
 * What the core's driver gets: the value to hand over, `null` for nothing, or why that is impossible.
 * @typedef {{ core: string | null } | { refuse: string }} Verdict
 */

/** @typedef {(value: string) => Verdict} Rule */

/** @param {string | null} core @returns {Verdict} */
const hand = (core) => ({ core })
/** @param {string} why @returns {Verdict} */
const refuse = (why) => ({ refuse: why })

const NODE_ONLY = 'only the Node driver knows it: set lockUri too, a connection string without it'
const TLS_ONLY = "the lock's own connection can't honour it"

/** @param {RegExp} form @param {string} what @param {(value: string) => Verdict} then @returns {Rule} */
const checked = (form, what, then) => (value) =>
  form.test(value) ? then(value) : refuse(`it must be ${what}`)

const text = hand
/** @type {Rule} */
const bodiesOnly = () => hand(null)
const flag = checked(/^(true|false)$/, 'true or false', hand)
const bodiesFlag = checked(/^(true|false)$/, 'true or false', bodiesOnly)
const count = checked(/^\d{1,10}$/, 'a whole number, 0 or more', hand)
const bodiesCount = checked(/^\d{1,10}$/, 'a whole number, 0 or more', bodiesOnly)
const bodiesNumber = checked(/^-?\d{1,10}$/, 'a whole number', bodiesOnly)
/** @param {string} why @returns {Rule} */
const never = (why) => () => refuse(why)

const READ_PREFERENCES = /^(primary|primaryPreferred|secondary|secondaryPreferred|nearest)$/
const MECHANISMS = /^(SCRAM-SHA-1|SCRAM-SHA-256|PLAIN|MONGODB-X509|MONGODB-OIDC)$/

/** @type {Rule} */
function mechanism(value) {
  if (value === 'DEFAULT') return hand(null)
  if (value === 'MONGODB-CR') return refuse('no supported server has this mechanism any more')
  if (value === 'GSSAPI' || value === 'MONGODB-AWS') return refuse(NODE_ONLY)
  return checked(MECHANISMS, 'a mechanism that both drivers have', hand)(value)
}

/** @type {Rule} */
function mechanismProperties(value) {
  for (const pair of value.split(',')) {
    const [name, set = null] = pair.split(/:(.*)/s)
    if (set === null) return refuse('it must be a list of NAME:value')
    if (name !== 'ENVIRONMENT') continue
    if (set !== 'k8s') return refuse(`of the environments, the core has k8s alone; ${NODE_ONLY}`)
  }
  return hand(value)
}

/** @type {Rule} */
function compressors(value) {
  const list = value.split(',')
  if (!list.every((each) => /^(none|snappy|zlib|zstd)$/.test(each))) {
    return refuse('it must be a list of none, snappy, zlib and zstd')
  }
  return hand(list.filter((each) => each !== 'none').join(',') || null)
}

/** Zero means "for ever" to the Node driver and "at once" to the core's; the core has its own patience. */
const selection = checked(/^\d{1,10}$/, 'a whole number, 0 or more', (value) =>
  hand(Number(value) === 0 ? null : value),
)

/** The core's driver refuses to look more often than this. */
const LEAST_HEARTBEAT_MS = 500
const heartbeat = checked(/^\d{1,10}$/, 'a whole number, 0 or more', (value) =>
  hand(String(Math.max(Number(value), LEAST_HEARTBEAT_MS))),
)

/** @param {string} harmless @param {Verdict} verdict for the harmless value @returns {Rule} */
const unless = (harmless, verdict) => (value) => (value === harmless ? verdict : refuse(TLS_ONLY))

/** @type {[Rule, string][]} */
const ROWS = [
  [text, 'authSource replicaSet srvServiceName proxyHost proxyUsername proxyPassword'],
  [text, 'tlsCAFile tlsCertificateKeyFile tlsCertificateKeyFilePassword'],
  [flag, 'directConnection loadBalanced retryReads retryWrites tls ssl'],
  [flag, 'tlsInsecure tlsAllowInvalidCertificates'],
  [count, 'connectTimeoutMS localThresholdMS maxIdleTimeMS waitQueueTimeoutMS srvMaxHosts'],
  [checked(/^[1-9]\d{0,9}$/, 'a whole number, 1 or more', hand), 'maxConnecting'],
  [checked(/^([1-9]\d{0,4})$/, 'a port', hand), 'proxyPort'],
  [checked(/^-1$|^\d$/, 'a whole number from -1 to 9', hand), 'zlibCompressionLevel'],
  [checked(/^(auto|poll|stream)$/, 'auto, poll or stream', hand), 'serverMonitoringMode'],
  [mechanism, 'authMechanism'],
  [mechanismProperties, 'authMechanismProperties'],
  [compressors, 'compressors'],
  [selection, 'serverSelectionTimeoutMS'],
  [heartbeat, 'heartbeatFrequencyMS'],
  // The lock reads and writes with majority, at the primary, whatever the bodies do.
  [
    checked(READ_PREFERENCES, 'a read preference, such as secondaryPreferred', bodiesOnly),
    'readPreference',
  ],
  [bodiesOnly, 'readPreferenceTags readConcernLevel w'],
  [bodiesNumber, 'maxStalenessSeconds wtimeout wtimeoutMS'],
  [bodiesFlag, 'journal j fsync'],
  // The core has its own name, pool and deadlines.
  [bodiesOnly, 'appName'],
  [bodiesCount, 'maxPoolSize minPoolSize socketTimeoutMS timeoutMS minHeartbeatFrequencyMS'],
  [bodiesCount, 'maxAdaptiveRetries autoSelectFamilyAttemptTimeout keepAliveInitialDelay'],
  [bodiesFlag, 'enableOverloadRetargeting noDelay autoSelectFamily'],
  [bodiesOnly, 'family hints localAddress localPort minInternalBufferSize'],
  // How bodies see documents, and what their driver logs.
  [bodiesFlag, 'monitorCommands forceServerObjectId ignoreUndefined promoteLongs promoteValues'],
  [bodiesFlag, 'promoteBuffers useBigInt64 serializeFunctions raw bsonRegExp'],
  [bodiesFlag, 'checkKeys enableUtf8Validation useNewUrlParser useUnifiedTopology'],
  [bodiesOnly, 'mongodbLogPath mongodbLogComponentSeverities mongodbLogMaxDocumentLength'],
  // What narrows or replaces the checks of TLS must hold for both, or it holds for neither.
  [unless('false', hand(null)), 'tlsAllowInvalidHostnames'],
  [never(TLS_ONLY), 'tlsCRLFile checkServerIdentity secureContext servername ciphers ecdhCurve'],
  [never(TLS_ONLY), 'minDHSize secureProtocol allowPartialTrustChain crl pskCallback SNICallback'],
  [never(TLS_ONLY), 'lookup'],
  [never('it is called tlsAllowInvalidCertificates'), 'rejectUnauthorized'],
  [never('give it as a file: tlsCAFile'), 'ca'],
  [never('give it as a file: tlsCertificateKeyFile'), 'cert key pfx'],
  [never('it is called tlsCertificateKeyFilePassword'), 'passphrase'],
]

/** @type {ReadonlyMap<string, { name: string, rule: Rule }>} by the name in lower case */
export const URI_OPTIONS = new Map(
  ROWS.flatMap(([rule, names]) =>
    names.split(' ').map((name) => [name.toLowerCase(), { name, rule }]),
  ),
)

/** Values of these may be repeated, or be empty. */
export const REPEATABLE = 'readpreferencetags'
