/**
 * A write that can't be stopped. The server refuses to: its `killOp` and `killSessions` are made to
 * fail, as they do where they are not supported or not permitted. Takes more than a minute, because
 * each run tries for 30 s.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { failCommand } from '../helpers/fail-point.js'
import {
  fillDocuments,
  firstWriteBegan,
  overwriting,
  overwritten,
  writesGoingOn,
} from '../helpers/orphans.js'
import { project } from '../helpers/project.js'

const msEach = 10

test('a write that can not be stopped keeps run after run from beginning, until it can', async (t) => {
  const database = await freshDatabase(t)
  await fillDocuments(database)
  const app = await project(t, { '1-overwrite.js': overwriting('await update', msEach) }, database)
  const holder = app.mmk(['up', '--lock-ttl', '2'])
  await firstWriteBegan(database)
  holder.kill('SIGKILL')
  await holder.ended
  const refusal = { failCommands: ['killOp', 'killSessions'], errorCode: 13 }
  const permit = await failCommand(t, database.uri, refusal)

  for (const attempt of ['first', 'second']) {
    const refused = await app.mmk(['up', '--lock-ttl', '2', '--wait'], { timeoutMs: 90_000 }).ended
    assert.equal(refused.code, 3, `the ${attempt}: ${refused.stdout}${refused.stderr}`)
    assert.match(refused.stderr, /LOCK_ORPHANS/)
    assert.equal(await database.lock(), null, 'it gives the lock back')
    assert.equal((await runsOf(database, '1')).ups, 1, 'no body ran')
  }
  assert.equal((await writesGoingOn(database)).length, 1, 'it goes on all the time')

  await permit()
  const { code, stdout, stderr } = await app.mmk(['up', '--lock-ttl', '2', '--wait']).ended
  assert.equal(code, 0, stdout + stderr)
  assert.equal(await overwritten(database), 0)
})
