import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { BSON } from 'mongodb'
import { createHost } from '../../lib/host.js'
import { createCauses } from '../../lib/thrown.js'
import { folder } from './folder.js'

const SETTLE = Buffer.from(BSON.serialize({ update: 'entries', when: new BSON.Long(5) }))
const UNKNOWN = 'UnknownTransactionCommitResult'
const TRANSIENT = 'TransientTransactionError'

/** @param {string} label */
const labelled = (label) => Object.assign(new Error(label), { errorLabels: [label] })

/** @type {import('../../lib/contract.d.ts').Failure} */
const LOST = {
  code: 'LOCK_LOST',
  message: 'lost',
  hint: null,
  certainty: 'known',
  context: {},
  causeId: null,
  suppressed: [],
}

/**
 * A client that writes down what is asked of it.
 * @param {{ n?: number, commits?: (Error | null)[], reply?: object }} [behaviour]
 */
function fakeClient({ n = 1, commits = [], reply = {} } = {}) {
  /** @type {string[]} */
  const calls = []
  /** @type {any[]} */
  const commands = []
  let active = false
  const session = {
    inTransaction: () => active,
    startTransaction: (/** @type {any} */ options) => {
      active = true
      calls.push(`start ${options.writeConcern.w}`)
    },
    commitTransaction: async () => {
      calls.push('commit')
      const failure = commits.shift()
      if (failure) throw failure
      active = false
    },
    abortTransaction: async () => {
      calls.push('abort')
      active = false
    },
    endSession: async () => void calls.push('end'),
  }
  const client = {
    connect: async () => void calls.push('connect'),
    close: async () => void calls.push('close'),
    startSession: () => session,
    db: (/** @type {string} */ name) => ({
      databaseName: name,
      command: async (/** @type {any} */ command, /** @type {any} */ options) => {
        commands.push({ command, session: options.session })
        return { n, ...reply }
      },
    }),
  }
  return { client, session, calls, commands }
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} source of the migration 1-a.mjs
 * @param {{ client?: any, hooks?: any, onEvent?: any, lines?: string[], patienceMs?: number }} [parts]
 */
async function hosted(
  t,
  source,
  { client = fakeClient().client, hooks, onEvent, lines = [], patienceMs = 60_000 } = {},
) {
  const migrationsDir = await folder(t, { '1-a.mjs': source })
  const causes = createCauses()
  /** @type {any[]} */
  const events = []
  /** @type {any} */
  const config = {
    ...{ uri: 'mongodb://h', dbName: 'app', migrationsDir, client, hooks, onEvent },
    transactionRetryTimeoutMs: patienceMs,
  }
  /** @type {any} */
  const logger = { info: (/** @type {string} */ line) => lines.push(line) }
  const host = createHost({ config, logger, causes, emit: (event) => void events.push(event) })
  const [facts] = await host.load(['1-a.mjs'])
  assert.deepEqual(await host.connect({ appName: 'mmk/r1' }), { ok: true })
  const call = { name: '1-a.mjs', runId: 'r1', fencingToken: null }
  return {
    host,
    causes,
    events,
    facts,
    migrationsDir,
    up: () => host.run({ ...call, direction: 'up', settle: null, fence: null }),
    upInTransaction: () => host.run({ ...call, direction: 'up', settle: SETTLE, fence: null }),
  }
}

/** Something for a body to write into that the test can read. */
const board = () => {
  const key = `mmk-test-${Math.random()}`
  /** @type {any} */
  const all = globalThis
  all[key] = { seen: [] }
  return { key: `globalThis[${JSON.stringify(key)}]`, board: all[key] }
}

describe('the host loads', () => {
  it('and tells what a file exports', async (t) => {
    const { facts } = await hosted(t, `export const up = () => {}, description = 'why'`)
    assert.deepEqual(facts, {
      ok: true,
      name: '1-a.mjs',
      down: false,
      useTransaction: null,
      description: 'why',
      onInterrupted: null,
    })
  })

  it('and reports every file that can’t be used', async (t) => {
    const migrationsDir = await folder(t, { 'a.mjs': 'export const x = 1', 'b.mjs': '}' })
    const causes = createCauses()
    const host = createHost({
      config: /** @type {any} */ ({ migrationsDir }),
      logger: null,
      causes,
      emit: () => {},
    })
    const facts = await host.load(['a.mjs', 'b.mjs', 'c.mjs'])
    const codes = facts.map((fact) => (fact.ok ? null : fact.error.code))
    assert.deepEqual(codes, [
      'MIGRATION_INVALID_EXPORT',
      'MIGRATION_LOAD_FAILED',
      'MIGRATION_FILE_NOT_FOUND',
    ])
  })
})

describe('the host runs a body', () => {
  it('with the context and the client', async (t) => {
    const { key, board: seen } = board()
    const lines = /** @type {string[]} */ ([])
    const fake = fakeClient()
    const { up } = await hosted(
      t,
      `export const up = (ctx, client) => {
        ${key} = { ctx, client }
        ctx.log('line\\x1b[2J')
      }`,
      { client: fake.client, lines },
    )
    const reply = await up()
    assert.equal(reply.outcome, 'done')
    assert.ok(Number.isInteger(reply.durationMs))
    assert.deepEqual(seen.seen, [])
    const { ctx, client } = /** @type {any} */ (globalThis)[JSON.parse(key.slice(11, -1))]
    assert.equal(client, fake.client)
    assert.deepEqual(
      [ctx.databaseName, ctx.name, ctx.direction, ctx.signal.aborted, 'session' in ctx],
      ['app', '1-a.mjs', 'up', false, false],
    )
    assert.deepEqual(lines, ['line\\x1b[2J'])
  })

  it('and reports whatever it throws, at once or later, by identity', async (t) => {
    for (const how of ['throw', 'return Promise.reject(']) {
      const { key, board: thrown } = board()
      const end = how === 'throw' ? '' : ')'
      const { up, causes } = await hosted(
        t,
        `export const up = () => { ${how} ${key}.seen ${end} }`,
      )
      const reply = await up()
      assert.ok(reply.outcome === 'threw')
      assert.equal(causes.get(reply.error.causeId), thrown.seen)
    }
  })

  it('and says where it threw', async (t) => {
    const { up, migrationsDir } = await hosted(
      t,
      `export async function up() {\n  throw new Error('x')\n}`,
    )
    const reply = await up()
    assert.ok(reply.outcome === 'threw')
    assert.ok(
      String(reply.error.context.location).startsWith(`${join(migrationsDir, '1-a.mjs')}:2:`),
    )
  })

  it('and aborts its signal with the reason, leaving a client that isn’t ours open', async (t) => {
    const fake = fakeClient()
    const { host, up } = await hosted(
      t,
      `export const up = ({ signal }) => new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      })`,
      { client: fake.client },
    )
    const running = up()
    host.abort(LOST)
    const reply = await running
    assert.ok(reply.outcome === 'threw')
    assert.equal(reply.error.name, 'LockLostError')
    await host.close()
    assert.ok(!fake.calls.includes('close'))
  })
})

describe('the host runs a body in a transaction', () => {
  const BODY = 'export const up = ({ session }) => { if (!session) throw new Error("none") }'

  it('that settles in the same session, commits, and ends the session', async (t) => {
    const fake = fakeClient()
    const { upInTransaction } = await hosted(t, BODY, fake)
    assert.equal((await upInTransaction()).outcome, 'done')
    assert.deepEqual(fake.calls, ['connect', 'start majority', 'commit', 'end'])
    const [{ command, session }] = fake.commands
    assert.equal(session, fake.session)
    assert.deepEqual(Object.keys(command), ['update', 'when'])
    assert.equal(command.when._bsontype, 'Long')
  })

  it('and rolls it back when it throws', async (t) => {
    const fake = fakeClient()
    const { upInTransaction } = await hosted(t, `export const up = () => { throw 'x' }`, fake)
    assert.equal((await upInTransaction()).outcome, 'threw')
    assert.deepEqual(fake.calls, ['connect', 'start majority', 'abort', 'end'])
    assert.deepEqual(fake.commands, [])
  })

  it('and rolls it back when somebody else moved the entry', async (t) => {
    const fake = fakeClient({ n: 0 })
    const { upInTransaction } = await hosted(t, BODY, fake)
    assert.equal((await upInTransaction()).outcome, 'conflict')
    assert.deepEqual(fake.calls, ['connect', 'start majority', 'abort', 'end'])
  })

  it('and takes a write error inside an ok reply for what it is', async (t) => {
    const fake = fakeClient({ reply: { writeErrors: [{ errmsg: 'no', code: 121 }] } })
    const { upInTransaction } = await hosted(t, BODY, fake)
    const reply = await upInTransaction()
    assert.ok(reply.outcome === 'threw')
    assert.deepEqual([reply.error.message, reply.error.context.code], ['no', 121])
  })

  it('and refuses one that ended its transaction itself', async (t) => {
    const fake = fakeClient()
    const source = 'export const up = ({ session }) => session.abortTransaction()'
    const { upInTransaction } = await hosted(t, source, fake)
    const reply = await upInTransaction()
    assert.ok(reply.outcome === 'threw')
    assert.match(reply.error.message, /ended its transaction itself/)
    assert.deepEqual(fake.commands, [])
  })

  it('and asks again when a commit’s outcome is unknown, until its time is over', async (t) => {
    const healed = fakeClient({ commits: [labelled(UNKNOWN), labelled(UNKNOWN)] })
    assert.equal((await (await hosted(t, BODY, healed)).upInTransaction()).outcome, 'done')
    assert.equal(healed.calls.filter((call) => call === 'commit').length, 3)
    const gone = fakeClient({ commits: [labelled(UNKNOWN)] })
    const { upInTransaction } = await hosted(t, BODY, { ...gone, patienceMs: 0 })
    assert.equal((await upInTransaction()).outcome, 'unknown')
    assert.equal(gone.calls.filter((call) => call === 'commit').length, 1)
  })

  it('and takes a commit whose write concern failed for one that may have happened', async (t) => {
    const error = Object.assign(new Error('no such mode'), { name: 'MongoWriteConcernError' })
    const fake = fakeClient({ commits: [error] })
    assert.equal((await (await hosted(t, BODY, fake)).upInTransaction()).outcome, 'unknown')
  })

  it('and knows that a commit which was refused did not happen', async (t) => {
    const fake = fakeClient({ commits: [new Error('not authorized')] })
    assert.equal((await (await hosted(t, BODY, fake)).upInTransaction()).outcome, 'threw')
  })

  it('and runs it again in a new transaction when the server gave it up', async (t) => {
    const fake = fakeClient({ commits: [labelled(TRANSIENT)] })
    const { upInTransaction, events } = await hosted(t, BODY, fake)
    const { durationMs, ...reply } = await upInTransaction()
    assert.deepEqual(reply, { outcome: 'done', attempts: 2 })
    const once = ['start majority', 'commit']
    assert.deepEqual(fake.calls, ['connect', ...once, 'abort', ...once, 'end'])
    assert.deepEqual(events, [
      { type: 'transactionRetried', name: '1-a.mjs', attempt: 2, reason: TRANSIENT },
    ])
  })

  it('and sees a passing error through those that the body put around it', async (t) => {
    const { key, board: seen } = board()
    const { upInTransaction } = await hosted(
      t,
      `export const up = () => {
        if (${key}.seen.push(1) > 1) return
        const cause = Object.assign(new Error('in'), { errorLabels: ['${TRANSIENT}'] })
        throw new Error('out', { cause: new Error('middle', { cause }) })
      }`,
    )
    assert.equal((await upInTransaction()).outcome, 'done')
    assert.equal(seen.seen.length, 2)
  })

  it('and does not run it again once its signal has aborted, or its time is over', async (t) => {
    const passing = `throw Object.assign(new Error('t'), { errorLabels: ['${TRANSIENT}'] })`
    const late = await hosted(t, `export const up = () => { ${passing} }`, { patienceMs: 0 })
    assert.equal((await late.upInTransaction()).outcome, 'threw')
    assert.deepEqual(late.events, [])
    const source = `export const up = ({ signal }) => new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        try { ${passing} } catch (error) { reject(error) }
      })
    })`
    const { host, upInTransaction, events } = await hosted(t, source)
    const running = upInTransaction()
    host.abort(LOST)
    assert.equal((await running).outcome, 'threw')
    assert.deepEqual(events, [])
  })

  it('and gives up early when the server has ended its transaction every time', async (t) => {
    const passing = `throw Object.assign(new Error('t'), { code: 251, errorLabels: ['${TRANSIENT}'] })`
    const { upInTransaction, events } = await hosted(t, `export const up = () => { ${passing} }`)
    const reply = await upInTransaction()
    assert.ok(reply.outcome === 'threw')
    assert.equal(reply.error.context.attempts, 3)
    assert.equal(events.length, 2)
  })
})

describe('the host’s hooks and events', () => {
  it('get 1.x’s arguments, and onError the very value that was thrown', async (t) => {
    /** @type {any[][]} */
    const calls = []
    const names = ['beforeAll', 'beforeEach', 'afterEach', 'afterAll', 'onError']
    const hooks = Object.fromEntries(
      names.map((name) => [
        name,
        async (/** @type {any[]} */ ...all) => void calls.push([name, ...all]),
      ]),
    )
    const { host, causes } = await hosted(t, 'export const up = () => {}', { hooks })
    const thrown = { odd: true }
    await host.hook({ hook: 'beforeAll' })
    await host.hook({ hook: 'beforeEach', name: '1' })
    await host.hook({ hook: 'afterEach', name: '1', durationMs: 7 })
    await host.hook({ hook: 'onError', name: '1', causeId: causes.keep(thrown) })
    assert.deepEqual(await host.hook({ hook: 'afterAll' }), { ok: true })
    assert.deepEqual(
      calls.map((call) => call.slice(0, -1)),
      [
        ['beforeAll'],
        ['beforeEach', '1'],
        ['afterEach', '1', 7],
        ['onError', '1', thrown],
        ['afterAll'],
      ],
    )
    for (const call of calls) assert.equal(call.at(-1).databaseName, 'app')
  })

  it('report what a hook throws, and nothing for a hook that isn’t there', async (t) => {
    const hooks = { afterAll: () => Promise.reject(new RangeError('no')) }
    const { host, causes } = await hosted(t, 'export const up = () => {}', { hooks })
    assert.deepEqual(await host.hook({ hook: 'beforeAll' }), { ok: true })
    const reply = await host.hook({ hook: 'afterAll' })
    assert.ok(!reply.ok)
    assert.deepEqual([reply.error.code, reply.error.name], [null, 'RangeError'])
    assert.ok(causes.get(reply.error.causeId) instanceof RangeError)
  })

  it('reach every watcher, even behind one that throws', async (t) => {
    /** @type {any[]} */
    const told = []
    const onEvent = (/** @type {any} */ event) => {
      told.push(event)
      throw new Error('ignored')
    }
    const { host, events } = await hosted(t, 'export const up = () => {}', { onEvent })
    host.emit({ type: 'lockReleased' })
    assert.deepEqual([told, events], [[{ type: 'lockReleased' }], [{ type: 'lockReleased' }]])
  })
})

describe('the host connects', () => {
  it('or says why not, within 10 seconds, without the password', async () => {
    const causes = createCauses()
    const config = { uri: 'mongodb://ann:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=50' }
    const host = createHost({
      config: /** @type {any} */ ({ ...config, dbName: 'app', migrationsDir: process.cwd() }),
      logger: null,
      causes,
      emit: () => {},
    })
    const reply = await host.connect({ appName: 'mmk/r1' })
    assert.ok(!reply.ok)
    assert.equal(reply.error.code, 'CONNECTION_FAILED')
    assert.match(reply.error.message, /127\.0\.0\.1:1/)
    assert.equal(
      reply.error.context.uri,
      'mongodb://***:***@127.0.0.1:1/?serverSelectionTimeoutMS=50',
    )
    assert.ok(!JSON.stringify(reply).includes('hunter2'))
    /** @type {any} */
    const kept = causes.get(reply.error.causeId)
    assert.equal(kept.name, 'ConnectionFailedError')
    assert.equal(kept.cause.name, 'MongoServerSelectionError')
  })
})
