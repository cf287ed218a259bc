import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  escapeLines,
  escapeText,
  formatAge,
  formatTime,
  listNames,
  plural,
  toDate,
} from '../../lib/text.js'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

describe('escapeText', () => {
  it('leaves letters of every script, emoji and spaces as they are', () => {
    for (const name of ['0001-add index.js', 'été-日本.ts', '👩‍🚀.js', '%s#?.js']) {
      assert.equal(escapeText(name), name)
    }
  })

  it('makes line breaks and terminal sequences visible instead of effective', () => {
    assert.equal(escapeText('a\nb\r\tc'), 'a\\nb\\r\\tc')
    assert.equal(escapeText('\u001b[2Jx\u009b1m\u007f'), '\\x1b[2Jx\\x9b1m\\x7f')
  })

  it('shows characters that would reverse or hide what follows', () => {
    assert.equal(escapeText('a\u202egpj\u2028\ufeff\ud800'), 'a\\u202egpj\\u2028\\ufeff\\ud800')
  })

  it('takes any value', () => {
    assert.equal(escapeText(null), 'null')
    assert.equal(escapeText(41), '41')
  })
})

describe('escapeLines', () => {
  it('keeps line breaks and tabs, and escapes the rest', () => {
    assert.equal(escapeLines('a\r\n\tb\u001b[1m'), 'a\n\tb\\x1b[1m')
  })
})

describe('formatTime', () => {
  it("shows the reader's local time", () => {
    assert.equal(formatTime(new Date(2026, 9, 15, 22, 24, 21)), '2026-10-15 22:24:21')
  })

  it('names the zone when asked for UTC', () => {
    const at = Date.UTC(2026, 9, 15, 13, 39, 17, 867)
    assert.equal(formatTime(at, { utc: true }), '2026-10-15 13:39:17 UTC')
  })

  it('shows a dash for what is no time', () => {
    for (const odd of [null, undefined, 'yesterday', {}, new Date(Number.NaN)]) {
      assert.equal(formatTime(odd), '—')
    }
  })

  it('does not throw at the ends of time', () => {
    assert.match(formatTime(8.64e15), /^\+275760/)
    assert.match(formatTime(-8.64e15, { utc: true }), /^-271821/)
  })
})

describe('toDate', () => {
  it('takes dates and milliseconds and nothing else', () => {
    assert.deepEqual(toDate(5), new Date(5))
    assert.deepEqual(toDate(new Date(5)), new Date(5))
    assert.equal(toDate('2026-10-15'), null)
    assert.equal(toDate(Number.NaN), null)
  })
})

describe('formatAge', () => {
  it('shows the two largest units', () => {
    assert.equal(formatAge(4 * SECOND), '4s')
    assert.equal(formatAge(3 * MINUTE + 20 * SECOND), '3m 20s')
    assert.equal(formatAge(2 * HOUR + 5 * MINUTE + 59 * SECOND), '2h 5m')
    assert.equal(formatAge(76 * HOUR), '3d 4h')
  })

  it('leaves out a second unit that is zero', () => {
    assert.equal(formatAge(MINUTE), '1m')
    assert.equal(formatAge(48 * HOUR), '2d')
  })

  it('never counts backwards', () => {
    assert.equal(formatAge(-5000), '0s')
    assert.equal(formatAge(Number.NaN), '0s')
  })
})

describe('lists and counts', () => {
  it('uses the singular for one', () => {
    assert.equal(plural(1, 'migration'), '1 migration')
    assert.equal(plural(0, 'migration'), '0 migrations')
  })

  it('stops after the first few names and counts the rest', () => {
    assert.equal(listNames(['a', 'b', 'c'], 2), 'a, b … and 1 more')
    assert.equal(listNames(['a\n']), 'a\\n')
  })
})
