/**
 * A primary is elected whose clock is ten minutes ahead: to it, every lease is long over.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MongoClient } from 'mongodb'
import { openGate } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { clockOff, noFaketime } from '../helpers/faketime.js'
import { lostWarning } from '../helpers/lost.js'
import { ownServer } from '../helpers/own-server.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

/** The member whose clock is off. */
const skewed = 2
/** Longer than an election takes. */
const upWithTtl = ['up', '--lock-ttl', '6']

/**
 * Fenced transactions until the gate opens. Each takes the next number from one counter, in the
 * transaction, so that the numbers are the order in which they were committed.
 */
const fencedEffects = `
export async function up({ client, db, fence, fencingToken, signal }) {
  const effects = db.collection('effects')
  await effects.findOne({})
  for (let i = 0; i < 2400 && !(await db.collection('gate').findOne({})); i += 1) {
    signal.throwIfAborted()
    const session = client.startSession()
    try {
      await session.withTransaction(async () => {
        const { n } = await db.collection('counter').findOneAndUpdate(
          { _id: 'n' }, { $inc: { n: 1 } }, { upsert: true, returnDocument: 'after', session })
        await effects.insertOne({ _id: n, token: fencingToken, pid: process.pid }, { session })
        await fence(session)
      }, { timeoutMS: 20_000 })
    } finally {
      await session.endSession()
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
`

/** @param {string} uri of a member @param {import('mongodb').Document} command */
async function tell(uri, command) {
  const client = new MongoClient(uri)
  try {
    return await client.db('admin').command(command)
  } finally {
    await client.close()
  }
}

/**
 * Makes the member with the wrong clock the primary, faster than a lease can run out meanwhile.
 *
 * @param {readonly string[]} direct URIs of the members
 */
async function electSkewed(direct) {
  const itself = direct[skewed] ?? ''
  const before = await tell(itself, { hello: 1 })
  assert.equal(before.isWritablePrimary, false, 'a member with a right clock is primary at first')
  const elected = () =>
    tell(itself, { replSetStepUp: 1 }).then(
      () => true,
      () => false,
    )
  await poll(elected, { what: 'it is elected', deadlineMs: 40_000 })
  await poll(async () => (await tell(itself, { hello: 1 })).isWritablePrimary, {
    what: 'it takes writes',
  })
}

test('LEASE-02: a new primary whose clock is ten minutes ahead takes no lease from a live holder, and a paused one commits nothing after its successor', {
  skip: noFaketime,
}, async (t) => {
  const env = (/** @type {number} */ index) => (index === skewed ? clockOff('+10m') : {})
  const { uri, direct } = await ownServer(t, { members: 3, env })
  const database = await freshDatabase(t, uri)
  const { mmk } = await project(t, { '1-effects.js': fencedEffects }, database)
  const effects = database.db.collection('effects')
  const committed = (/** @type {import('mongodb').Document} */ filter) =>
    effects.countDocuments(filter)

  const holder = mmk(upWithTtl)
  await poll(() => committed({}), { what: 'the first effect is committed', deadlineMs: 30_000 })
  const owner = (await database.lock())?.owner
  const waiter = mmk([...upWithTtl, '--wait'])
  await poll(() => waiter.stderr().includes('Waiting'), { what: 'the next run waits' })
  const before = await committed({})
  await electSkewed(direct)

  const ahead = (await database.now()).getTime() - Date.now()
  assert.ok(ahead > 500_000, `the new primary is ${ahead} ms ahead`)
  await poll(async () => (await committed({})) > before + 3, {
    what: 'the holder goes on under the new primary',
    deadlineMs: 30_000,
  })
  assert.equal((await database.lock())?.owner, owner)

  holder.kill('SIGSTOP')
  await poll(() => committed({ pid: { $ne: holder.pid } }), {
    what: 'the next run takes over from the paused holder',
    deadlineMs: 40_000,
  })
  holder.kill('SIGCONT')
  const lost = await holder.ended
  assert.equal(lost.code, 5, lost.stdout + lost.stderr)
  assert.match(lost.stderr, lostWarning)
  await openGate(database)
  const { code, stdout, stderr } = await waiter.ended

  assert.equal(code, 0, stdout + stderr)
  const tokens = (await effects.find().sort({ _id: 1 }).toArray()).map(({ token }) => token)
  assert.equal(new Set(tokens).size, 2)
  assert.deepEqual(
    tokens,
    [...tokens].sort((one, other) => one - other),
  )
  assert.equal((await database.entry('1-effects.js'))?.status, 'applied')
})
