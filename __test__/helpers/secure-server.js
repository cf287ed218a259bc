/**
 * A server that can be reached in every way that a connection string can say: with TLS and without,
 * by a password of either kind or a certificate, over IPv4, IPv6 and a unix socket.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { freePort } from '../../scripts/free-port.js'
import { ensureMongod } from '../../scripts/mongod-binary.js'
import { endWithUs } from '../../scripts/process.js'
import { clientName, makeCertificates } from './certificates.js'
import { poll } from './poll.js'

/** Every reserved character there is, and some that are only unusual. */
export const reserved = 'p@ss:w/rd%#?[]+ ü&='

/** @type {import('mongodb').Document[]} */
const users = [
  { createUser: 'root', pwd: 'root-secret', roles: ['root'] },
  { createUser: 'sha1', pwd: reserved, roles: ['root'], mechanisms: ['SCRAM-SHA-1'] },
  { createUser: 'sha256', pwd: reserved, roles: ['root'], mechanisms: ['SCRAM-SHA-256'] },
]

/**
 * @typedef {object} SecureServer
 * @property {string} host and port
 * @property {number} port
 * @property {string} socket path of its unix socket
 * @property {boolean} ipv6 does it listen on `[::1]` too? Not every machine has that
 * @property {import('./certificates.js').Certificates} certificates
 * @property {MongoClient} root a client that may do anything
 * @property {() => Promise<void>} stop
 *
 * @returns {Promise<SecureServer>}
 */
export async function startSecureServer() {
  const binary = await ensureMongod()
  const folder = await mkdtemp(join(tmpdir(), 'mmk-tls-'))
  const certificates = await makeCertificates(folder)
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const ipv6 = addresses.some(({ address }) => address === '::1')
  const port = await freePort()
  const options = {
    '--dbpath': folder,
    '--logpath': join(folder, 'log'),
    '--port': String(port),
    '--bind_ip': ipv6 ? '127.0.0.1,::1' : '127.0.0.1',
    '--wiredTigerCacheSizeGB': '0.25',
    '--unixSocketPrefix': folder,
    '--tlsMode': 'preferTLS',
    '--tlsCertificateKeyFile': certificates.server,
    '--tlsCAFile': certificates.ca,
    '--setParameter': 'authenticationMechanisms=SCRAM-SHA-1,SCRAM-SHA-256,MONGODB-X509',
  }
  const flags = ['--auth', '--tlsAllowConnectionsWithoutCertificates', ...(ipv6 ? ['--ipv6'] : [])]
  const child = spawn(binary.path, [...Object.entries(options).flat(), ...flags], {
    env: { ...process.env, ...binary.env },
    stdio: 'ignore',
  })
  const dismiss = endWithUs(() => child.kill('SIGKILL'))
  const host = `127.0.0.1:${port}`
  await createUsers(host)
  const root = await new MongoClient(`mongodb://root:root-secret@${host}/`).connect()
  const stop = async () => {
    await root.close()
    const closed = new Promise((resolve) => child.once('close', resolve))
    child.kill('SIGKILL')
    await closed
    dismiss()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  const socket = join(folder, `mongodb-${port}.sock`)
  return { host, port, socket, ipv6, certificates, root, stop }
}

/**
 * Before there is a user, a server takes the first one from its own machine.
 * @param {string} host
 */
async function createUsers(host) {
  /** @param {string} credentials @param {string} db @param {import('mongodb').Document} user */
  const create = async (credentials, db, user) => {
    const client = new MongoClient(`mongodb://${credentials}${host}/?serverSelectionTimeoutMS=500`)
    try {
      await client.db(db).command(user)
      return true
    } finally {
      await client.close()
    }
  }
  const [root = {}, ...others] = users
  const first = () => create('', 'admin', root).catch(() => false)
  await poll(first, { what: 'the server has its first user', deadlineMs: 60_000, everyMs: 100 })
  for (const user of others) await create('root:root-secret@', 'admin', user)
  await create('root:root-secret@', '$external', {
    createUser: clientName,
    roles: [{ role: 'root', db: 'admin' }],
  })
}
