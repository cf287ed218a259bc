/** The oplog's ways of telling an update, from 4.4 to 6.0. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginTale } from '../../scripts/torture/facts.js'
import { updated } from '../../scripts/torture/oplog.js'

test('a whole document replaces what was there', () => {
  assert.deepEqual(updated({ _id: 1, a: 1 }, { _id: 1, b: 2 }), { _id: 1, b: 2 })
})

test('fields are set and unset by their paths', () => {
  const change = { $v: 1, $set: { 'a.b': 2, c: 3 }, $unset: { d: true } }
  assert.deepEqual(updated({ a: { b: 1 }, d: 4 }, change), { a: { b: 2 }, c: 3 })
})

test('a difference inserts, updates, deletes and descends', () => {
  const before = { a: 1, b: 2, inner: { x: 1, y: 2 }, list: ['p', 'q', 'r'] }
  const diff = {
    d: { a: false },
    u: { b: 3 },
    i: { c: 4 },
    sinner: { u: { x: 9 } },
    slist: { a: true, l: 2, u0: 'z' },
  }
  assert.deepEqual(updated(before, { $v: 2, diff }), {
    b: 3,
    c: 4,
    inner: { x: 9, y: 2 },
    list: ['z', 'q'],
  })
})

test('a difference can descend into a document within a list', () => {
  const diff = { slist: { a: true, s1: { u: { n: 2 } } } }
  assert.deepEqual(updated({ list: [{ n: 0 }, { n: 1 }] }, { $v: 2, diff }), {
    list: [{ n: 0 }, { n: 2 }],
  })
})

test('the operations of a transaction are told in its place, other databases not at all', () => {
  const tale = beginTale('torture')
  const fence = { _id: 'mmk_fence', token: 1 }
  tale.tell({ op: 'i', ns: 'other.fenced', o: { _id: 0 }, wall: new Date(1) })
  tale.tell({
    op: 'c',
    ns: 'admin.$cmd',
    wall: new Date(2),
    o: {
      applyOps: [
        { op: 'i', ns: 'torture.fenced', o: { _id: 'e', token: 1 } },
        { op: 'i', ns: 'torture._mmk_locks', o: fence, o2: { _id: 'mmk_fence' } },
      ],
    },
  })
  tale.tell({
    op: 'u',
    ns: 'torture._mmk_locks',
    wall: new Date(3),
    o: { $v: 2, diff: { u: { token: 2 } } },
    o2: { _id: 'mmk_fence' },
  })
  assert.deepEqual(tale.facts, [
    { kind: 'effect', wall: 2, id: 'e', before: null, after: { _id: 'e', token: 1 } },
    { kind: 'fence', wall: 2, id: 'mmk_fence', before: null, after: fence },
    { kind: 'fence', wall: 3, id: 'mmk_fence', before: fence, after: { ...fence, token: 2 } },
  ])
})
