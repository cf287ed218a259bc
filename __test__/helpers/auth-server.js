/**
 * A replica set of one member that asks who you are: for what a user may not do.
 */

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { freePort } from '../../scripts/free-port.js'
import { ensureMongod } from '../../scripts/mongod-binary.js'
import { leaveServer } from './database.js'
import { poll } from './poll.js'

const root = { user: 'root', pwd: 'root', roles: ['root'] }

/**
 * @typedef {object} AuthServer
 * @property {string} uri of the administrator
 * @property {(db: string, privileges: import('mongodb').Document[]) => Promise<string>} userWith
 *   makes a user that may do this in that database, and no more; returns its URI
 */

/**
 * @param {import('node:test').TestContext} t it ends with this test
 * @returns {Promise<AuthServer>}
 */
export async function startAuthServer(t) {
  const binary = await ensureMongod()
  const folder = await mkdtemp(join(tmpdir(), 'mmk-auth-'))
  const keyFile = join(folder, 'key')
  await writeFile(keyFile, randomBytes(64).toString('base64'), { mode: 0o600 })
  const port = String(await freePort())
  const replication = ['--replSet', 'rs0', '--keyFile', keyFile, '--oplogSize', '64']
  const place = ['--dbpath', folder, '--logpath', join(folder, 'log'), '--port', port]
  const child = spawn(
    binary.path,
    [...place, ...replication, '--bind_ip', '127.0.0.1', '--wiredTigerCacheSizeGB', '0.25'],
    { env: { ...process.env, ...binary.env }, stdio: 'ignore' },
  )
  const host = `127.0.0.1:${port}`
  const uri = `mongodb://${root.user}:${root.pwd}@${host}/?replicaSet=rs0`
  t.after(async () => {
    await leaveServer(uri)
    const closed = new Promise((resolve) => child.once('close', resolve))
    child.kill('SIGKILL')
    await closed
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  await initiate(host)
  return {
    uri,
    userWith: async (db, privileges) => {
      await onServer(uri, async (client) => {
        const roles = [{ role: 'limited', db }]
        await client.db(db).command({ createRole: 'limited', privileges, roles: [] })
        await client.db(db).command({ createUser: 'limited', pwd: 'limited', roles })
      })
      return `mongodb://limited:limited@${host}/?replicaSet=rs0&authSource=${db}`
    },
  }
}

/**
 * Before there is a user, a server takes these few commands from its own machine.
 * @param {string} host
 */
async function initiate(host) {
  const uri = `mongodb://${host}/?directConnection=true&serverSelectionTimeoutMS=500`
  const config = { _id: 'rs0', members: [{ _id: 0, host }] }
  const patience = { deadlineMs: 60_000, everyMs: 100 }
  await poll(
    () =>
      onServer(uri, (client) => client.db('admin').command({ replSetInitiate: config })).then(
        () => true,
        (error) => error.code === 23,
      ),
    { what: 'the server is initiated', ...patience },
  )
  const { pwd, roles, user: createUser } = root
  await poll(
    () =>
      onServer(uri, (client) => client.db('admin').command({ createUser, pwd, roles })).then(
        () => true,
        () => false,
      ),
    { what: 'it has an administrator', ...patience },
  )
}

/**
 * @template T
 * @param {string} uri
 * @param {(client: MongoClient) => Promise<T>} work
 */
async function onServer(uri, work) {
  const client = new MongoClient(uri)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}
