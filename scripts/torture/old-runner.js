/**
 * A runner of mongo-migrate-kit 1.3.0 in the fleet, as after half a deploy: it knows nothing of our
 * leases and fences, and takes turns by `lockedAt` alone. Its own history tells when it believed that
 * it held the lock: from the begin of its body to the end.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createRandom } from './random.js'
import { prepareRepo } from './repos.js'
import { profile, record } from './watch.js'

// It reads the same environment variables as we do. By their TTL it judges our locks; its own are
// judged by 60 s whatever it says.
const { TORTURE_HOME = '', TORTURE_SEED = '' } = process.env
const random = createRandom(TORTURE_SEED)

let finishing = false
process.once('message', () => {
  finishing = true
})
process.once('disconnect', () => process.exit(0))

// By a name that the type checker does not follow: the package is optional.
const old = await import(String('mongo-migrate-kit-1x'))

for (let done = 0; done < 1000 && !finishing; done += 1) {
  const { migrationsDir } = prepareRepo(TORTURE_HOME, random, profile, 'old')
  try {
    await old.runMigrations(
      {
        migrationsDir,
        migrationsCollection: '_mmk_migrations_old',
        logger: null,
      },
      { onLockHeld: 'wait', lockPollIntervalMs: 50 },
    )
    record('oldRoundEnded', { outcome: 'done' })
  } catch (/** @type {any} */ error) {
    record('oldRoundEnded', { outcome: error?.code ?? String(error) })
  }
  await delay(random.between(...profile.oldRestMs))
}
process.disconnect()
