import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { executionFailureText } from '../../lib/failed-body.js'
import { busyLockText, joinText, unlockLines, waitingText } from '../../lib/messages.js'

const acquiredAt = new Date(2026, 9, 15, 22, 24, 21)

/** @param {number} ms */
const after = (ms) => new Date(acquiredAt.getTime() + ms)

const holder = {
  namespace: null,
  host: 'deploy-a',
  pid: 16152,
  executedBy: 'asha',
  running: null,
  acquiredAt,
  lockedAt: acquiredAt,
  expiresAt: after(60_000),
  now: after(2000),
  ttlMs: 60_000,
  expired: false,
}

describe('the busy-lock message', () => {
  it('names the default namespace, the holder, the reason, the end and the way out', () => {
    assert.equal(
      joinText(busyLockText(holder)),
      `The migration lock is held by the default namespace
  Holder: host deploy-a, pid 16152, user asha, since 2026-10-15 22:24:21 (2s ago)
  Why: all repos on this database take turns — one migration run at a time
  If the holder crashed, the lock frees itself at 2026-10-15 22:25:21; \`mmk unlock\` releases it now (check the holder first)
  Try: run again when it finishes (app start: runMigrations({ onLockHeld: "wait" }))`,
    )
  })

  it('says after a wait how long it was, and what sets that', () => {
    const [waited, tryAgain] = busyLockText(holder, { waitedMs: 41_000 }).details.slice(-2)
    assert.match(waited ?? '', /^Waited 41s for it: lockWaitTimeoutMs, or `mmk up --wait=<ms>`/)
    assert.equal(tryAgain, 'Try: run again when it finishes')
    assert.deepEqual(busyLockText(null, { waitedMs: 41_000 }).details, [waited, tryAgain])
  })

  it('names the repo that holds it when it is another', () => {
    const { message } = busyLockText({ ...holder, namespace: 'orders-worker' })
    assert.equal(message, 'The migration lock is held by namespace "orders-worker"')
  })

  it("reads the core's own shape as well", () => {
    const { executedBy: user, ...rest } = holder
    const asCore = { ...rest, user, acquiredAt: acquiredAt.getTime(), now: after(2000).getTime() }
    assert.deepEqual(busyLockText(asCore), busyLockText(holder))
  })

  it("says so when it can't tell when the lock frees itself", () => {
    const { details } = busyLockText({ ...holder, expiresAt: null })
    assert.match(details[2], /^If the holder crashed, the lock doesn't say when it frees itself; /)
  })

  it('tells what is known of a lock with odd fields', () => {
    const { details } = busyLockText({ host: 'a\u001b[2J', now: new Date() })
    assert.equal(details[0], 'Holder: host a\\x1b[2J')
    assert.equal(busyLockText({}).details[0], 'Holder: unknown (the lock names nobody)')
  })

  it('counts from the last renewal when the lock does not say since when it is held', () => {
    const { details } = busyLockText({ ...holder, acquiredAt: null })
    assert.match(details[0], /since 2026-10-15 22:24:21 \(2s ago\)$/)
  })

  it('still advises when the holder was gone before it could be read', () => {
    const { message, details } = busyLockText(null)
    assert.equal(message, 'The migration lock was held by another run')
    assert.match(details[0], /^Try: /)
  })

  it('can show its times in UTC', () => {
    const at = new Date(Date.UTC(2026, 0, 2, 3, 4, 5))
    const { details } = busyLockText({ ...holder, acquiredAt: at, now: at }, { utc: true })
    assert.match(details[0], /since 2026-01-02 03:04:05 UTC \(0s ago\)$/)
  })
})

describe('the unlock dialogue', () => {
  const lockedAt = new Date('2026-10-15T13:39:17.867Z')
  const worker = {
    namespace: 'orders-worker',
    host: 'worker-7c9f',
    pid: 41,
    executedBy: 'deploy',
    acquiredAt: lockedAt,
    lockedAt,
    expiresAt: new Date(lockedAt.getTime() + 60_000),
    now: new Date(lockedAt.getTime() + 4000),
    ttlMs: 60_000,
    expired: false,
  }

  it('warns loudly about the lock of another repo', () => {
    const lines = unlockLines(worker, { ourNamespace: 'orders-api' })
    assert.deepEqual(lines.slice(0, 2), [
      '⚠ Lock held by namespace "orders-worker": pid 41 on worker-7c9f (deploy) since 2026-10-15T13:39:17.867Z',
      '⚠ This lock belongs to "orders-worker", not this repo ("orders-api") — releasing it may let two migrations run at once',
    ])
  })

  it('names this repo as the default namespace when it has no other name', () => {
    const lines = unlockLines(worker, { ourNamespace: null })
    assert.match(lines[1], /not this repo \(the default namespace\) — /)
  })

  it('has no such warning for our own lock', () => {
    const lines = unlockLines(worker, { ourNamespace: 'orders-worker' })
    assert.equal(lines.length, 2)
    assert.doesNotMatch(lines[1], /belongs to/)
  })

  it('has no such warning for the lock of the default namespace', () => {
    const lines = unlockLines({ ...worker, namespace: null }, { ourNamespace: 'orders-api' })
    assert.deepEqual(lines, [
      '⚠ Lock held by the default namespace: pid 41 on worker-7c9f (deploy) since 2026-10-15T13:39:17.867Z',
      '⚠ Last renewed 4s ago, within its TTL (1m) — the holder is almost certainly still running',
    ])
  })

  it('says how long ago a silent holder renewed, without the warning', () => {
    const now = new Date(lockedAt.getTime() + 90_000)
    const lines = unlockLines({ ...worker, now }, { ourNamespace: 'orders-worker' })
    assert.equal(lines[1], 'Last renewed 1m 30s ago, longer than its TTL (1m)')
  })

  it('says that a lease which has ended needs no unlock', () => {
    const now = new Date(lockedAt.getTime() + 80_000)
    const lines = unlockLines({ ...worker, now, expired: true }, { ourNamespace: 'orders-worker' })
    assert.equal(lines[1], 'Its lease ended 20s ago: the next run takes it over by itself')
  })

  it('promises no take-over of a lease that a run may be unable to watch', () => {
    const facts = { ...worker, expired: true, runId: 'r', beats: 3 }
    const stuck =
      /takes it over by itself, unless the primary has changed since: then only releasing/
    for (const odd of [{ ttlMs: -1 }, { ttlMs: null }, { beats: null }]) {
      assert.match(unlockLines({ ...facts, ...odd }, { ourNamespace: null }).at(-1) ?? '', stuck)
    }
    assert.doesNotMatch(unlockLines(facts, { ourNamespace: null }).at(-1) ?? '', stuck)
  })

  it('can describe a lock whose fields are missing', () => {
    const lines = unlockLines({}, { ourNamespace: null })
    assert.deepEqual(lines, [
      '⚠ Lock held by the default namespace: pid ? on ? (?) since an unknown time',
      '⚠ The lock does not say when it was last renewed',
    ])
  })
})

describe('the waiting line', () => {
  it('says who holds the lock, what it runs and when its lease ends', () => {
    assert.equal(
      waitingText({ ...holder, namespace: 'orders-worker', running: '0001-a\n.js' }),
      'Waiting for the migration lock of namespace "orders-worker" (host deploy-a, pid 16152)' +
        ', which is running 0001-a\\n.js; its lease lasts until 2026-10-15 22:25:21 unless renewed',
    )
  })

  it('leaves out what is not known', () => {
    assert.equal(waitingText({}), 'Waiting for the migration lock of the default namespace')
  })
})

describe('the message of a migration that failed', () => {
  it('says why, where, what remains in the database, and what else ran or did not', () => {
    const text = executionFailureText({
      name: '0002-b.js',
      direction: 'up',
      reason: 'TypeError: boom',
      location: '/app/migrations/0002-b.js:3:9',
      transaction: false,
      done: ['0001-a.js'],
      notStarted: ['0003-c.js'],
    })
    assert.equal(
      joinText(text),
      `0002-b.js failed in up()
  Reason: TypeError: boom
  Thrown at: /app/migrations/0002-b.js:3:9
  Not rolled back: it ran without a transaction, so its writes so far remain
  Applied before it, and kept: 0001-a.js
  Not started: 0003-c.js`,
    )
  })

  it('says that a transaction left nothing behind', () => {
    const { details } = executionFailureText({
      name: 'a.js',
      direction: 'down',
      reason: 'x',
      transaction: true,
    })
    assert.deepEqual(details, ['Reason: x', 'Rolled back: its transaction left nothing behind'])
  })

  it('keeps a reason of several lines on one', () => {
    const { details } = executionFailureText({ name: 'a', direction: 'up', reason: 'x\ny' })
    assert.deepEqual(details, ['Reason: x\\ny'])
  })
})
