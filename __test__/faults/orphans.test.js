/**
 * A process dies, its write goes on: the server carries a command to its end whoever sent it. Each
 * test leaves such a write behind in another way, and then lets the next run write to the same
 * documents: not one may be overwritten afterwards.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { counting } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { oneX } from '../helpers/one-x.js'
import {
  documents,
  fillDocuments,
  firstWriteBegan,
  overwriting,
  overwritten,
  writesGoingOn,
} from '../helpers/orphans.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const ttl = ['--lock-ttl', '2']

/**
 * A run that is in the middle of its slow write.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} ending of its body
 */
async function writingRun(t, ending) {
  const database = await freshDatabase(t)
  await fillDocuments(database)
  const app = await project(t, { '1-overwrite.js': overwriting(ending) }, database)
  const holder = app.mmk(['up', ...ttl])
  await firstWriteBegan(database)
  return { database, app, holder }
}

/**
 * The next run, which must find and stop what is left, and write every document itself.
 *
 * @param {Awaited<ReturnType<typeof writingRun>>} left
 * @returns {Promise<string>} what it printed
 */
async function nextRun({ database, app }) {
  const { code, stdout, stderr } = await app.mmk(['up', ...ttl, '--wait']).ended
  assert.equal(code, 0, stdout + stderr)
  const goingOn = await writesGoingOn(database)
  assert.equal(await overwritten(database), 0, 'documents of the next run that were overwritten')
  assert.equal(goingOn.length, 0, 'it was gone before the next run was done')
  assert.equal(await database.db.collection('documents').countDocuments({ by: 'next' }), documents)
  return stdout + stderr
}

const stopping = /⚠ Stopping what an earlier run left running on the server: update/

test('a run after a kill -9 stops the write that the killed one left on the server', async (t) => {
  const left = await writingRun(t, 'await update')
  left.holder.kill('SIGKILL')
  await left.holder.ended
  assert.equal((await writesGoingOn(left.database)).length, 1, 'it outlives its process')

  assert.match(await nextRun(left), stopping)
})

test('a run after a second Ctrl-C stops the write that the first left on the server', async (t) => {
  const stubborn = `signal.addEventListener('abort', () => console.error('told')); await new Promise(() => {})`
  const left = await writingRun(t, stubborn)
  left.holder.kill('SIGINT')
  await poll(() => left.holder.stderr().includes('told'), { what: 'the body was told to stop' })
  left.holder.kill('SIGINT')
  const { code, stdout, stderr } = await left.holder.ended
  assert.equal(code, 130, stdout + stderr)
  assert.equal((await writesGoingOn(left.database)).length, 1, 'it outlives its process')

  assert.match(await nextRun(left), stopping)
})

test('a run after a first Ctrl-C is not overwritten by the write that was going on', async (t) => {
  const left = await writingRun(t, 'await update')
  left.holder.kill('SIGINT')
  const { code, stdout, stderr } = await left.holder.ended
  assert.equal(code, 130, stdout + stderr)

  await nextRun(left)
})

test('a run after a process.exit in the body is not overwritten by its write', async (t) => {
  const left = await writingRun(t, 'await sent(); process.exit(0)')
  const { code, stdout, stderr } = await left.holder.ended
  assert.notEqual(code, 0, stdout + stderr)

  await nextRun(left)
})

test('a run after a body that threw is not overwritten by a write it did not await', async (t) => {
  const left = await writingRun(t, `await sent(); throw new Error('changed my mind')`)
  const { code, stdout, stderr } = await left.holder.ended
  assert.equal(code, 1, stdout + stderr)

  await nextRun(left)
})

test('a run after an unlock of a live holder is not overwritten by the write of that one', async (t) => {
  const left = await writingRun(t, 'await update')
  const unlock = await left.app.mmk(['unlock', '--yes']).ended
  assert.equal(unlock.code, 0, unlock.stdout + unlock.stderr)

  await nextRun(left)

  const { code, stdout, stderr } = await left.holder.ended
  assert.equal(code, 5, stdout + stderr)
})

test('a run finds the write of a killed one although 1.3.0 has taken the lock in between', async (t) => {
  const left = await writingRun(t, 'await update')
  left.holder.kill('SIGKILL')
  await left.holder.ended
  await left.app.write('other/1-other.js', counting('other'))
  const env = { MMK_LOCK_TTL: '1', MMK_MIGRATIONS_DIR: './other', MMK_COLLECTION: 'other' }
  await poll(async () => (await oneX(left.app, ['up'], env).ended).code === 0, {
    what: '1.3.0 has taken the lock over and released it',
    deadlineMs: 15_000,
  })
  assert.equal(await left.database.lock(), null)
  assert.equal((await writesGoingOn(left.database)).length, 1, 'the write still goes on')

  assert.match(await nextRun(left), stopping)
})

test('metrics and events tell how many operations of earlier runs were stopped', async (t) => {
  const left = await writingRun(t, 'await update')
  left.holder.kill('SIGKILL')
  await left.holder.ended
  /** @type {import('mongo-migrate-kit').MmkEvent[]} */
  const events = []

  const { metrics } = await runMigrations({
    ...left.database.config,
    migrationsDir: left.app.migrationsDir,
    lockTTLSeconds: 2,
    onLockHeld: 'wait',
    logger: null,
    onEvent: (event) => void events.push(event),
  })

  assert.equal(metrics.takeovers, 1)
  assert.equal(metrics.orphansKilled, 1)
  const found = events.find((event) => event.type === 'orphansFound')
  assert.match(found?.operations.join() ?? '', /^update .*documents$/)
  assert.equal(await overwritten(left.database), 0)
})
