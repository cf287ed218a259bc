/**
 * A process under torture: one run after another through the public API, as an app that boots over
 * and over. It ends after some rounds, when it is told to finish, or when it is killed.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { createRandom } from './random.js'
import { prepareRepo } from './repos.js'
import { beginRound, onEvent, profile, record } from './watch.js'

// Where the servers are, and the TTL, come by the product's own environment variables.
const { TORTURE_HOME = '', TORTURE_SEED = '', MMK_URI = '' } = process.env
/** @type {typeof import('../../lib/index.js')} */
const { runMigrations } = createRequire(join(TORTURE_HOME, 'worker.js'))('mongo-migrate-kit')
const rounds = 40
/** A body may outlive its round, and is to go on as if nothing had happened. */
const kept = 3
/** @type {MongoClient[]} */
const left = []

let finishing = false
process.once('message', () => {
  finishing = true
})
process.once('disconnect', () => process.exit(0))
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => {
    record('broken', { event, error: describe(error) })
    process.exit(70)
  })
}

const random = createRandom(TORTURE_SEED)

/** @param {any} error */
const describe = (error) => ({ name: error?.name, code: error?.code, message: error?.message })

async function round() {
  const noLock = random.chance(profile.unlocked)
  const repo = prepareRepo(TORTURE_HOME, random, profile, noLock ? 'unlocked' : 'locked')
  const client = random.chance(profile.ownClient) ? new MongoClient(MMK_URI) : null
  beginRound({ noLock, repo: repo.name, ownClient: client !== null })
  try {
    await runMigrations({
      migrationsDir: repo.migrationsDir,
      namespace: repo.name,
      onLockHeld: random.chance(profile.patient) ? 'wait' : 'throw',
      outOfOrder: 'allow',
      logger: null,
      onEvent,
      noLock,
      ...(client && { client }),
    })
    record('roundEnded', { outcome: 'done' })
  } catch (error) {
    record('roundEnded', { outcome: 'rejected', error: describe(error) })
  } finally {
    if (client) left.push(client)
  }
}

for (let done = 0; done < rounds && !finishing; done += 1) {
  await round()
  if (left.length > kept) await left.shift()?.close()
  await delay(random.between(0, 300))
}
for (const client of left) await client.close()
process.disconnect()
