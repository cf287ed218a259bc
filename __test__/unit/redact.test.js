import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { redact, redactData, redactUri } from '../../lib/redact.js'

const SECRET = 'hunter2'

/**
 * Every way in which a password ends up in a URI, and whether the URI is still well formed.
 * @type {Record<string, [uri: string, wellFormed: boolean]>}
 */
const uris = {
  'a normal URI': ['mongodb://ann:hunter2@db.example:27017/app', true],
  'several hosts and options': ['mongodb://ann:hunter2@a.example:1,b.example:2/?w=1', true],
  'an SRV name': ['mongodb+srv://ann:hunter2@db.example.net/app?retryWrites=true', true],
  'a percent-encoded password': ['mongodb://ann:hun%40hunter2@db.example/app', true],
  'an unescaped colon': ['mongodb://ann:x:hunter2@db.example/app', true],
  'an unescaped question mark': ['mongodb://ann:x?hunter2@db.example/app', true],
  'an empty user': ['mongodb://:hunter2@db.example/app', true],
  'an unknown option': ['mongodb://ann:hunter2@db.example/app?nonsense=1', true],
  'a broken percent sign': ['mongodb://ann:hunter2%@db.example/app', true],
  'a bad port': ['mongodb://ann:hunter2@db.example:999999/app', false],
  'an unescaped @': ['mongodb://ann:x@hunter2@db.example/app', false],
  'an unescaped slash': ['mongodb://ann:x/hunter2@db.example/app', false],
  'a blank in the password': ['mongodb://ann:x hunter2@db.example/app', false],
  'a quote in the password': ['mongodb://ann:x"hunter2@db.example/app', true],
  'no host at all': ['mongodb://ann:hunter2', false],
  'a wrong scheme': ['mongo://ann:hunter2@db.example/app', false],
  'another database': ['postgres://ann:hunter2@db.example/app', false],
  'a scheme in capitals': ['MongoDB://ann:hunter2@db.example/app', false],
  'a slash too few': ['mongodb:/ann:hunter2@db.example/app', false],
  'a leading blank': [' mongodb://ann:hunter2@db.example/app', false],
  'double quotes around it': ['"mongodb://ann:hunter2@db.example/app"', false],
  'single quotes around it': ["'mongodb://ann:hunter2@db.example/app'", false],
  'no scheme': ['ann:hunter2@db.example:27017/app', false],
  'no scheme and a slash': ['ann:x/hunter2@db.example:27017/app', false],
  'a session token': [
    'mongodb://db.example/?authMechanismProperties=AWS_SESSION_TOKEN:hunter2,X:1',
    true,
  ],
  'an encoded session token': [
    'mongodb://db.example/?authMechanismProperties=AWS_SESSION_TOKEN%3Ahunter2',
    true,
  ],
  'the password of a key': [
    'mongodb://db.example/?tls=true&tlsCertificateKeyFilePassword=hunter2&w=1',
    true,
  ],
  'the password of a proxy': ['mongodb://db.example/?proxyHost=p&proxyPassword=hunter2', true],
}

describe('redaction', () => {
  for (const [what, [uri, wellFormed]] of Object.entries(uris)) {
    it(`hides the secret in ${what}, alone and in any sentence`, () => {
      const sentences = [uri, `Could not reach ${uri}, gave up`, `{"uri":"${uri}"}`, `a\n${uri}\nb`]
      for (const text of sentences) assert.ok(!redact(text).includes(SECRET), redact(text))
      assert.ok(!redactUri(uri).includes(SECRET))
      assert.equal(/db\.example|a\.example/.test(redactUri(uri)), wellFormed)
    })
  }

  it('leaves alone what has no secret', () => {
    for (const text of [
      'starts with "mongodb://" or "mongodb+srv://"',
      'connect to mongodb://localhost:27017/app failed',
      'mongodb://[::1]:27017,%2Ftmp%2Fmongodb.sock/app?replicaSet=rs0',
      'file:///app/node_modules/.pnpm/mongodb@7.0.0/node_modules/mongodb/lib/index.js:1:2',
      'C:\\app\\.pnpm\\mongodb@7.0.0\\index.js:1:2',
      'at up (/app/migrations/1-a.ts:3:9)',
      'see https://www.npmjs.com/package/@scope/name',
      'the password: must be a string',
      'ann@db.example holds the lock since 10:00:01',
    ]) {
      assert.equal(redact(text), text)
    }
  })

  it('shows a URI whose scheme was forgotten as far as it can be no user and no password', () => {
    for (const [uri, shown = uri] of [
      ['localhost:27017'],
      ['LOCALHOST'],
      ['127.0.0.1:5000/app'],
      ['[::1]:27017'],
      ['mongo:27017/shop'],
      ['db-1.internal:27017,db-2.internal:27018'],
      ['localhost:27017/app?tlsCertificateKeyFilePassword=hunter2', 'localhost:27017/app?***'],
      // Each of these may be a user and a password, or a password.
      ['ann:hunter2', '***'],
      ['ann:12345', '***'],
      ['hunter2', '***'],
      ['hun.ter.2', '***'],
      ['localhost:27017,hunter2', '***'],
      ['localhost:hunter2', '***'],
      ['localhost:27017@hunter2', '***'],
      ['localhost:27017/a b', '***'],
    ]) {
      assert.equal(redactUri(uri), shown)
    }
  })

  it('hides credentials in other addresses and in printed options', () => {
    assert.equal(redact('https://ann:hunter2@proxy.example/'), 'https://***:***@proxy.example/')
    assert.ok(!redact("{ auth: { password: 'hunter2' } }").includes(SECRET))
  })

  it('reaches every text of plain data, and keeps the rest as it is', () => {
    const date = new Date(0)
    const data = redactData({ list: [{ uri: 'mongodb://ann:hunter2@h/' }], date, n: 1, none: null })
    assert.deepEqual(data, { list: [{ uri: 'mongodb://***:***@h/' }], date, n: 1, none: null })
  })
})
