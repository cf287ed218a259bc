import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockLoop, counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const ttlSeconds = 2
const blockedMs = 5 * ttlSeconds * 1000
/** A run renews every half TTL; a machine that stalls may cost it a beat or two. */
const leastRenewals = 6

test('LEASE-03: a migration that blocks the event loop for five TTLs keeps its lock and keeps others out', async (t) => {
  const database = await freshDatabase(t)
  const migrations = { '1-block.js': counting('1', blockLoop(blockedMs)) }
  const { mmk } = await project(t, migrations, database)
  const holder = mmk(['up', '--lock-ttl', `${ttlSeconds}`])
  await poll(async () => (await runsOf(database, '1')).ups === 1, { what: 'the body began' })

  const expiries = new Set()
  const second = mmk(['up', '--lock-ttl', `${ttlSeconds}`])
  const entered = performance.now()
  while (performance.now() - entered < blockedMs - 500) {
    const [lock, now] = [await database.lock(), await database.now()]
    assert.ok(lock, 'the lock document is there all the time')
    assert.ok(lock.expiresAt > now, 'the lease never ends')
    expiries.add(lock.expiresAt.getTime())
    await new Promise((resolve) => setTimeout(resolve, 100))
  }

  assert.ok(expiries.size >= leastRenewals, `expiresAt moved ${expiries.size} times`)
  const refused = await second.ended
  assert.equal(refused.code, 3, refused.stdout + refused.stderr)
  assert.match(refused.stderr, /LOCK_ALREADY_HELD/)
  const { code, stdout, stderr } = await holder.ended
  assert.equal(code, 0, stdout + stderr)
  assert.equal((await runsOf(database, '1')).ups, 1)
  assert.equal((await database.entry('1-block.js'))?.status, 'applied')
})
