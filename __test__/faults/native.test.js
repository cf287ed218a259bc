/**
 * The addon in a process: threads that load it too, callbacks that are kept, workers that end.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting, runsOf } from '../helpers/bodies.js'
import { freshDatabase } from '../helpers/database.js'
import { project } from '../helpers/project.js'

const one = { '1.js': counting('1') }

/**
 * @param {import('node:test').TestContext} t
 * @param {string} source of an app
 */
async function app(t, source) {
  const database = await freshDatabase(t)
  const created = await project(t, one, database)
  await created.write('app.js', source)
  return { database, ...created }
}

test('NAT-01: callbacks that an app keeps do not keep its process, and they hear everything', async (t) => {
  const { node } = await app(
    t,
    `import { runMigrations } from 'mongo-migrate-kit'
     globalThis.events = []
     globalThis.options = {
       logger: null,
       onEvent: (event) => globalThis.events.push(event.type),
       progress: { onStart() {}, onStop() {} },
       hooks: { afterAll() { globalThis.after = true } },
     }
     globalThis.kept = runMigrations(globalThis.options)
     process.on('exit', () => console.log(globalThis.after, globalThis.events.join()))`,
  )

  const { code, stdout, stderr } = await node('app.js', { timeoutMs: 20_000 }).ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /^true .*lockAcquired.*migrationStarted.*migrationFinished.*lockReleased/)
})

test('NAT-07: a process that does not await its run ends after it, not before', async (t) => {
  const slow = 'await new Promise((resolve) => setTimeout(resolve, 1500).unref())'
  const { node, database, write } = await app(
    t,
    `import { runMigrations } from 'mongo-migrate-kit'
     void runMigrations({ logger: null }).then(() => console.log('done'))`,
  )
  await write('migrations/2-slow.js', counting('2', slow))

  const { code, stdout, stderr } = await node('app.js').ended

  assert.equal(code, 0, stderr)
  assert.match(stdout, /done/)
  assert.equal((await runsOf(database, '2')).ups, 1)
})

test('NAT-02: the main thread and three workers load it at once, and each can run', async (t) => {
  const { node, database } = await app(
    t,
    `import { isMainThread, Worker } from 'node:worker_threads'
     import { runMigrations } from 'mongo-migrate-kit'
     const self = new URL(import.meta.url)
     const workers = isMainThread ? [1, 2, 3].map(() => new Worker(self)) : []
     const exits = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)))
     const { upToDate, applied } = await runMigrations({ logger: null, onLockHeld: 'wait' })
     console.log('ran', upToDate || applied.length === 1)
     if ((await Promise.all(exits)).some((code) => code !== 0)) process.exitCode = 1`,
  )

  const { code, stdout, stderr } = await node('app.js').ended

  assert.equal(code, 0, stdout + stderr)
  assert.equal(stdout.match(/ran true/g)?.length, 4, stdout)
  assert.equal((await runsOf(database, '1')).ups, 1)
})

test('NAT-05: workers that are terminated take nothing with them that the next one needs', async (t) => {
  const { node } = await app(
    t,
    `import { isMainThread, parentPort, Worker } from 'node:worker_threads'
     import { runMigrations } from 'mongo-migrate-kit'
     if (!isMainThread) {
       await runMigrations({ logger: null })
       parentPort.postMessage('ran')
       setInterval(() => {}, 1000)
     } else {
       for (let i = 0; i < 10; i += 1) {
         const worker = new Worker(new URL(import.meta.url))
         await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
         await worker.terminate()
       }
       await runMigrations({ logger: null })
       console.log('all ran')
     }`,
  )

  const { code, signal, stdout, stderr } = await node('app.js').ended

  assert.equal(signal, null)
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /all ran/)
})

/** glibc fills what is freed with rubbish, and hands it out again at once: its later use shows. */
const unforgiving = {
  MALLOC_PERTURB_: '165',
  GLIBC_TUNABLES: 'glibc.malloc.tcache_count=0',
}

// While the main thread has a core, what a worker's core was doing goes on after the worker.
for (const before of ['', 'await pendingMigrations(options)']) {
  const whose = before === '' ? '' : ', while the main thread has used the core'
  test(`NAT-05: a worker that is terminated in a body leaves an app that can run again${whose}`, async (t) => {
    const { node, database, write } = await app(
      t,
      `import { isMainThread, Worker } from 'node:worker_threads'
     import { pendingMigrations, runMigrations } from 'mongo-migrate-kit'
     const options = { logger: null, lockTTLSeconds: 1, onLockHeld: 'wait' }
     if (!isMainThread) await runMigrations(options)
     else {
       ${before}
       const worker = new Worker(new URL(import.meta.url))
       const { MongoClient } = await import('mongodb')
       const client = new MongoClient(process.env.MMK_URI)
       const runs = client.db(process.env.MMK_DB).collection('runs')
       while (!(await runs.findOne({ _id: '2' }))) await new Promise((r) => setTimeout(r, 20))
       await worker.terminate()
       await client.close()
       const { applied } = await runMigrations(options)
       console.log('applied', applied.length)
     }`,
    )
    const onceStuck = `
    const { ups } = await db.collection('runs').findOne({ _id: '2' })
    if (ups === 1) await new Promise((resolve) => setTimeout(resolve, 600_000))`
    await write('migrations/2-stuck.js', counting('2', onceStuck))

    const { code, signal, stdout, stderr } = await node('app.js', { env: unforgiving }).ended

    assert.equal(signal, null, stdout + stderr)
    assert.equal(code, 0, stdout + stderr)
    assert.match(stdout, /applied 1/)
    assert.equal((await runsOf(database, '2')).ups, 2)
  })
}

test('NAT-03: callbacks whose promises reject neither end the process nor the run', async (t) => {
  const { node, database } = await app(
    t,
    `import { runMigrations } from 'mongo-migrate-kit'
     const rejects = async () => { throw new Error('from a callback') }
     const logger = { info: rejects, success: rejects, dim: rejects, warn: rejects, error: rejects }
     const progress = { onStart: rejects, onStop: rejects }
     const { applied } = await runMigrations({ logger, progress, onEvent: rejects })
     console.log('applied', applied.length)`,
  )

  const { code, stdout, stderr } = await node('app.js').ended

  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /applied 1/)
  assert.equal(await database.lock(), null)
})

test('NAT-03: callbacks that throw neither end the process nor the run', async (t) => {
  const { database, config } = await api(t, one)
  const throws = () => {
    throw new Error('from a callback')
  }

  const { applied } = await runMigrations({
    ...config,
    onEvent: throws,
    progress: { onStart: throws, onStop: throws },
  })

  assert.equal(applied.length, 1)
  assert.equal(await database.lock(), null)
})
