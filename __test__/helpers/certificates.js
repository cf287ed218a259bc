/**
 * A certificate authority for one test, with a server's and a client's certificate, made by the
 * openssl command line: it has to be installed.
 */
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** What the client is called on the server: the subject, as RFC 2253 writes it. */
export const clientName = 'CN=runner,OU=clients,O=mmk'

/**
 * @typedef {object} Certificates
 * @property {string} ca path of the authority's certificate
 * @property {string} server path of the server's key and certificate
 * @property {Record<'pkcs8' | 'pkcs1' | 'encrypted' | 'old' | 'ec', string>} client paths of the
 *   client's certificate with its key, in each form that a key can have
 * @property {string} password of the encrypted keys
 *
 * @param {string} folder
 * @returns {Promise<Certificates>}
 */
export async function makeCertificates(folder) {
  const password = 'k3y p@ss/word'
  /** @param {string[]} args */
  const openssl = (...args) => execute('openssl', args, { cwd: folder })
  const rsa = ['-newkey', 'rsa:2048', '-nodes']
  await openssl(
    'req',
    '-x509',
    ...rsa,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
    '-subj',
    '/O=mmk/CN=authority',
    '-addext',
    'keyUsage=keyCertSign,cRLSign',
  )
  /** @param {string} name @param {string[]} key @param {string} subject */
  const signed = async (name, key, subject) => {
    await writeFile(
      join(folder, 'extensions'),
      'subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost\n',
    )
    await openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
    await openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      'extensions',
      '-out',
      `${name}.crt`,
    )
  }
  await signed('server', rsa, '/O=mmk/OU=servers/CN=127.0.0.1')
  await signed('client', rsa, '/O=mmk/OU=clients/CN=runner')
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await signed('ec', ec, '/O=mmk/OU=clients/CN=runner')
  const pass = ['-passout', `pass:${password}`]
  await openssl('rsa', '-in', 'client.key', '-traditional', '-out', 'pkcs1.key')
  await openssl('rsa', '-in', 'client.key', '-traditional', '-aes256', ...pass, '-out', 'old.key')
  await openssl(
    'pkcs8',
    '-topk8',
    '-in',
    'client.key',
    '-v2',
    'aes-256-cbc',
    ...pass,
    '-out',
    'encrypted.key',
  )
  /** @param {string} name @param {string} key @param {string} certificate */
  const joined = async (name, key, certificate) => {
    const parts = await Promise.all([key, certificate].map((file) => readFile(join(folder, file))))
    await writeFile(join(folder, `${name}.pem`), Buffer.concat(parts))
    return join(folder, `${name}.pem`)
  }
  return {
    ca: join(folder, 'ca.pem'),
    server: await joined('server', 'server.key', 'server.crt'),
    client: {
      pkcs8: await joined('pkcs8', 'client.key', 'client.crt'),
      pkcs1: await joined('pkcs1', 'pkcs1.key', 'client.crt'),
      encrypted: await joined('encrypted', 'encrypted.key', 'client.crt'),
      old: await joined('old', 'old.key', 'client.crt'),
      ec: await joined('ec', 'ec.key', 'ec.crt'),
    },
    password,
  }
}
