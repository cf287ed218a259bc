/**
 * What the benchmarks print: every cell says what its head promises.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { document, figure, section } from '../../bench/table.js'
import { judge } from '../../bench/wants.js'

/** @import { Result, Row } from '../../bench/measurement.d.ts' */

const labels = { ours: 'mmk 2', oneX: 'mmk 1', migrateMongo: 'mm 14' }

/** @param {string} name @param {Row[]} rows @returns {Result} */
const result = (name, rows) => ({ name, title: 'Title', about: 'How.', seconds: 1, rows })

/** @param {string} id @param {Row['samples']} samples @returns {Row} */
const row = (id, samples) => ({ id, work: id, unit: 'ms', samples })

/** @param {Row} only @returns {string[]} the cells of its line */
function cells(only) {
  const lines = section(result('any', [only]), labels)
    .trimEnd()
    .split('\n')
  return String(lines.at(-1))
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}

test('a figure has three digits that mean something', () => {
  assert.equal(figure(0), '0')
  assert.equal(figure(0.04567), '0.0457')
  assert.equal(figure(12.345), '12.3')
  assert.equal(figure(1234.5), '1,235')
})

test('a line has the median and the least of each tool, and the ratios with their quartiles', () => {
  const samples = { ours: [10, 12, 14], oneX: [20, 24, 28], migrateMongo: [10, 6, 7] }
  const ratios = ['0.5×', '2× [1.5–2]']
  assert.deepEqual(cells(row('up', samples)), ['up, ms', '12 (10)', '24 (20)', '7 (6)', ...ratios])
})

test('where the slow ones matter a line has p50 and p95', () => {
  const only = { ...row('up', { ours: [1, 2, 3, 4, 5] }), show: /** @type {const} */ ('tail') }
  assert.equal(cells(only)[1], 'p50 3, p95 4.8')
})

test('who was not measured has a dash, and no ratio', () => {
  assert.deepEqual(cells(row('up', { ours: [5] })), ['up, ms', '5', '–', '–', '–', '–'])
})

test('what a figure is made of is told below the table', () => {
  const only = { ...row('boot', { ours: [3] }), detail: { ours: '2 find, 1 insert' } }
  const text = section(result('commands', [only]), labels)
  assert.match(text, /\|\n\nWith the bodies' own:\n\n- boot, mmk 2: 2 find, 1 insert\n$/)
  assert.ok(!section(result('commands', [row('boot', { ours: [3] })]), labels).includes('own'))
})

test('a want is met, missed, or not measured, and never one for the other', () => {
  const measured = (/** @type {number} */ boot) =>
    result('commands', [row('boot', { ours: [boot] })])
  const of = (/** @type {Result[]} */ results) =>
    judge(results).find(({ work }) => work === 'boot with nothing pending')

  assert.deepEqual(
    [of([measured(1)])?.met, of([measured(2)])?.met, of([])?.met],
    ['yes', 'no', 'unknown'],
  )
  assert.ok(judge([]).every(({ met, measured }) => met === 'unknown' && measured === '–'))
})

test('growth by file is what ten thousand add to ten, in microseconds', () => {
  const rows = [row('time-10', { ours: [50] }), row('time-10000', { ours: [50 + 99.9] })]
  const growth = judge([result('boot', rows)]).find(({ want }) => want === '≤ 15 µs')
  assert.deepEqual([growth?.measured, growth?.met], ['10 µs', 'yes'])
})

test('growth is linear as long as 10,000 files lie on the line through 10 and 2,000', () => {
  const of = (/** @type {number[]} */ [few, many, most]) => {
    const times = { 'time-10': few, 'time-2000': many, 'time-10000': most }
    const rows = Object.entries(times).map(([id, time]) => row(id, { ours: [Number(time)] }))
    return judge([result('boot', rows)]).find(({ work }) => work.includes('time at 10,000'))?.met
  }
  assert.equal(of([50, 50 + 19.9, 50 + 99.9]), 'yes')
  assert.equal(of([50, 50 + 19.9, 50 + 499.5]), 'no')
})

test('the report of a noisy run says so before any figure', () => {
  const facts = { date: '2026-11-30', machine: 'A machine', versions: 'Node', plots: [] }
  const results = [result('any', [row('up', { ours: [5] })])]

  const noisy = document({ ...facts, noise: ['too busy'] }, [], results, labels)
  const quiet = document({ ...facts, noise: [] }, [], results, labels)

  assert.match(noisy, /noisy run, not to be quoted:\*\* too busy\./)
  assert.ok(noisy.indexOf('noisy') < noisy.indexOf('|'))
  assert.doesNotMatch(quiet, /noisy/)
})
