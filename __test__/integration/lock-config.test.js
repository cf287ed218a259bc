/**
 * A configuration of the lock that can't work, or was misspelled: it is refused before anything runs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runMigrations } from 'mongo-migrate-kit'
import { api } from '../helpers/api.js'
import { counting } from '../helpers/bodies.js'

/** @type {Record<string, unknown>} */
const unfit = { zero: 0, negative: -5, 'a fraction': 0.3, text: '30s', 'not finite': Infinity }

for (const [kind, lockTTLSeconds] of Object.entries(unfit)) {
  test(`LEASE-09: a TTL that is ${kind} is refused before the database is touched`, async (t) => {
    const { database, config } = await api(t, { '1.js': counting('1') })
    const run = runMigrations({ ...config, lockTTLSeconds: /** @type {any} */ (lockTTLSeconds) })

    await assert.rejects(run, (/** @type {any} */ error) => {
      assert.equal(error.code, 'CONFIG_INVALID')
      assert.match(error.message, /lockTTLSeconds/)
      return true
    })

    assert.deepEqual(await database.db.listCollections().toArray(), [])
  })
}

test('LEASE-09: a TTL under fifteen seconds is warned about: a failover can outlast it', async (t) => {
  const { config, onEvent, eventsOf } = await api(t, { '1.js': counting('1') })

  await runMigrations({ ...config, onEvent, lockTTLSeconds: 14 })

  assert.ok(eventsOf('warning').some(({ code }) => code === 'SHORT_LOCK_TTL'))
})

/** @type {Record<string, [string[], NodeJS.ProcessEnv, RegExp]>} */
const misspelled = {
  'a flag': [['--lock-tll', '5'], {}, /--lock-ttl/],
  'a variable': [[], { MMK_LOCK_TLL: '5' }, /MMK_LOCK_TTL/],
}

for (const [kind, [args, env, suggestion]] of Object.entries(misspelled)) {
  test(`REL-06: ${kind} that is misspelled is answered with the right name`, async (t) => {
    const { app } = await api(t, { '1.js': counting('1') })

    const { stdout, stderr } = await app.mmk(['up', ...args], { env }).ended

    assert.match(stdout + stderr, suggestion)
  })
}

test('REL-06: misspelled keys of a configuration are errors that name the right ones', async (t) => {
  const { app, config } = await api(t, { '1.js': counting('1') })
  const wrong = { ...config, lockTTLSecond: 5, migrationDir: 'x', changelogColection: 'y' }
  await assert.rejects(runMigrations(/** @type {any} */ (wrong)), (/** @type {any} */ error) => {
    assert.equal(error.code, 'CONFIG_INVALID')
    assert.match(error.message, /lockTTLSeconds[\s\S]*migrationsDir/)
    return true
  })
  await app.write('mmk.config.json', JSON.stringify({ lockTTLSecond: 5 }))
  const { code, stderr } = await app.mmk(['up']).ended
  assert.equal(code, 2, stderr)
  assert.match(stderr, /lockTTLSeconds/)
})
