import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as driver7 from 'mongodb'
import * as driver6 from 'mongodb-6'
import { createContext } from '../../lib/context.js'

const OUR_KEYS = ['db', 'client', 'session', 'mongoose', 'signal', 'log', 'name', 'direction']

for (const [version, { Db, MongoClient }] of /** @type {[string, any][]} */ ([
  ['6', driver6],
  ['7', driver7],
])) {
  const client = new MongoClient('mongodb://127.0.0.1:1')
  const db = client.db('app')
  const context = createContext({ db, client, name: '1-a.js', direction: 'up' })

  describe(`a context over the driver's version ${version}`, () => {
    it('gives its own fields', () => {
      assert.equal(context.db, db)
      assert.equal(context.client, client)
      assert.deepEqual(Object.keys(context), ['db', 'client', 'name', 'direction'])
      const { name, ...rest } = context
      assert.equal(name, '1-a.js')
      assert.deepEqual(Object.keys(rest), ['db', 'client', 'direction'])
    })

    it('is usable as the Db', () => {
      assert.ok(context instanceof Db)
      assert.equal(context.databaseName, 'app')
      const { collection } = context
      assert.equal(collection('users').collectionName, 'users')
      assert.equal(context.collection, context.collection)
      assert.ok('aggregate' in context)
      assert.equal(context.constructor, Db)
    })

    it('can be awaited, printed and extended like any object', async () => {
      assert.equal(await context, context)
      assert.ok(String(Object.prototype.toString.call(context)).startsWith('[object'))
      assert.equal(Object.assign(context, { mine: 1 }).mine, 1)
    })

    it('shares no name with the Db but the client, which means the same', () => {
      const members = new Set()
      for (let each = db; each && each !== Object.prototype; each = Object.getPrototypeOf(each)) {
        for (const key of Object.getOwnPropertyNames(each)) members.add(key)
      }
      const shared = OUR_KEYS.filter((key) => members.has(key))
      assert.deepEqual(
        shared.filter((key) => key !== 'client'),
        [],
      )
      if (members.has('client')) assert.equal(db.client, client)
    })
  })
}
