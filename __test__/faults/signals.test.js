/**
 * Signals to the command line. The lock's TTL is a minute in all of them: a lock that is free was
 * released, not forgotten.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { counting, openGate, runsOf, waitAtGate } from '../helpers/bodies.js'
import { freshDatabase, holdLock } from '../helpers/database.js'
import { ownServer } from '../helpers/own-server.js'
import { poll } from '../helpers/poll.js'
import { project } from '../helpers/project.js'

const codes = /** @type {const} */ ({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })

/** What comes before it has been answered: a body that waits for its database can't take no notice. */
const arrived = `process.stderr.write('arrived\\n')`
const told = `signal.addEventListener('abort', () => console.error('told'))`
const untilTold = `await new Promise((resolve) => signal.addEventListener('abort', resolve))`
const stuck = `${told}; await new Promise(() => {})`

/** How a body may take it, and what becomes of its entry. */
const bodies = {
  'throws when it is told': { body: `${untilTold}; throw new Error('stopping')`, state: 'failed' },
  'returns when it is told': { body: untilTold, state: 'applied' },
  'takes no notice': { body: stuck, state: 'interrupted' },
  'blocks the event loop': { body: 'while (true);', state: 'interrupted' },
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} body
 */
async function running(t, body) {
  const database = await freshDatabase(t)
  const long = counting('1', `${arrived}; ${body}`)
  const migrations = { '1-long.js': long, '2-next.js': counting('2') }
  const { mmk, write } = await project(t, migrations, database)
  const run = mmk(['up'])
  await poll(() => run.stderr().includes('arrived'), { what: 'the body began' })
  return { database, mmk, write, run }
}

for (const [signal, expected] of Object.entries(codes)) {
  describe(`${signal} to mmk up`, () => {
    for (const [way, { body, state }] of Object.entries(bodies)) {
      test(`REL-01: a body that ${way} ends ${state}, with ${expected} and a free lock`, async (t) => {
        const { database, mmk, write, run } = await running(t, body)

        const sent = performance.now()
        run.kill(/** @type {NodeJS.Signals} */ (signal))
        const { code, stdout, stderr, endedAt } = await run.ended

        assert.equal(code, expected, stdout + stderr)
        const [took, atMost] = [endedAt - sent, state === 'interrupted' ? 9000 : 4000]
        assert.ok(took <= atMost, `it ended after ${took} ms`)
        assert.equal(await database.lock(), null)
        assert.deepEqual(await runsOf(database, '2'), { ups: 0, downs: 0 })
        const status = await mmk(['status', '--json']).ended
        assert.equal(JSON.parse(status.stdout)[0].state, state)

        await write('migrations/1-long.js', counting('1'))
        const next = await mmk(['up']).ended
        assert.equal(next.code, 0, next.stdout + next.stderr)
        assert.equal((await runsOf(database, '2')).ups, 1)
      })
    }

    test(`a run that waits for the lock ends at once, with ${expected}`, async (t) => {
      const database = await freshDatabase(t)
      const { mmk } = await project(t, { '1-long.js': counting('1') }, database)
      const { owner } = await holdLock(database)
      const run = mmk(['up', '--wait'])
      await poll(() => run.stderr().includes('Waiting'), { what: 'it waits' })

      const sent = performance.now()
      run.kill(/** @type {NodeJS.Signals} */ (signal))
      const { code, stdout, stderr, endedAt } = await run.ended

      assert.equal(code, expected, stdout + stderr)
      assert.ok(endedAt - sent <= 2000, `it ended after ${endedAt - sent} ms`)
      assert.equal((await database.lock())?.owner, owner)
      assert.deepEqual(await database.entries(), [])
    })

    test(`a second one ends the process at once, with ${expected}`, async (t) => {
      const { database, run } = await running(t, stuck)
      run.kill(/** @type {NodeJS.Signals} */ (signal))
      await poll(() => run.stderr().includes('told'), { what: 'the body was told' })

      const sent = performance.now()
      run.kill(/** @type {NodeJS.Signals} */ (signal))
      const { code, stdout, stderr, endedAt } = await run.ended

      assert.equal(code, expected, stdout + stderr)
      assert.ok(endedAt - sent <= 1000, `it ended after ${endedAt - sent} ms`)
      assert.equal((await database.entry('1-long.js'))?.status, 'running')
    })
  })
}

test('the lock is free within two seconds of a signal to a body that settles', async (t) => {
  const { database, run } = await running(t, `${untilTold}; throw new Error('stopping')`)
  run.kill('SIGTERM')

  await poll(async () => (await database.lock()) === null, {
    what: 'the lock is free',
    deadlineMs: 2000,
  })
  assert.equal((await run.ended).code, 143)
})

test('a signal tells on stderr what was stopped, and under --json in one document', async (t) => {
  const database = await freshDatabase(t)
  const migrations = { '1-done.js': counting('1'), '2-long.js': counting('2', waitAtGate) }
  const { mmk } = await project(t, migrations, database)
  const run = mmk(['up', '--json'])
  await poll(async () => (await runsOf(database, '2')).ups === 1, { what: 'the body began' })

  run.kill('SIGTERM')
  const { code, stdout, stderr } = await run.ended
  await openGate(database)

  assert.equal(code, 143, stdout + stderr)
  assert.equal(JSON.parse(stdout).error.code, 'RUN_CANCELLED')
  assert.match(stderr, /RUN_CANCELLED/)
  assert.match(stderr, /2-long\.js/)
})

/** A hook that says that it was called, and never ends; its timer keeps the process alive. */
const neverEnds = `() => { console.error('called'); return new Promise((r) => setTimeout(r, 600_000)) }`

for (const hook of ['beforeAll', 'beforeEach', 'afterEach', 'afterAll']) {
  test(`a signal ends a run whose ${hook} hook takes no notice, with a free lock and one document`, async (t) => {
    const database = await freshDatabase(t)
    const { mmk, write } = await project(t, { '1-a.js': counting('1') }, database)
    await write('mmk.config.js', `export default { hooks: { ${hook}: ${neverEnds} } }`)
    const run = mmk(['up', '--json=2'])
    await poll(() => run.stderr().includes('called'), { what: 'the hook was called' })

    run.kill('SIGTERM')
    const { code, stdout, stderr } = await run.ended

    assert.equal(code, 143, stdout + stderr)
    assert.equal(JSON.parse(stdout).error.code, 'RUN_CANCELLED')
    assert.equal(await database.lock(), null)
  })
}

test('a signal ends a run whose file never finishes loading, with one document', async (t) => {
  const database = await freshDatabase(t)
  const loading = `console.error('loading'); await new Promise((r) => setTimeout(r, 600_000))`
  const { mmk } = await project(t, { '1-a.js': `${loading}; ${counting('1')}` }, database)
  const run = mmk(['up', '--json=2'])
  await poll(() => run.stderr().includes('loading'), { what: 'the file is being loaded' })

  run.kill('SIGTERM')
  const { code, stdout, stderr } = await run.ended

  assert.equal(code, 143, stdout + stderr)
  assert.equal(JSON.parse(stdout).error.code, 'RUN_CANCELLED')
  assert.deepEqual(await database.entries(), [])
})

test('a signal ends a run whose server does not answer any more, with one document', async (t) => {
  const { uri, members } = await ownServer(t)
  const database = await freshDatabase(t, uri)
  const migrations = { '1-long.js': counting('1', `${arrived}; ${untilTold}`) }
  const { mmk } = await project(t, migrations, database)
  const run = mmk(['up', '--json=2'])
  await poll(() => run.stderr().includes('arrived'), { what: 'the body began' })

  members[0].child.kill('SIGSTOP')
  t.after(() => members[0].child.kill('SIGCONT'))
  run.kill('SIGTERM')
  const { code, stdout, stderr } = await run.ended
  members[0].child.kill('SIGCONT')

  assert.equal(code, 143, stdout + stderr)
  assert.equal(JSON.parse(stdout).error.code, 'RUN_CANCELLED')
  assert.match(stderr, /RUN_CANCELLED/)
})
