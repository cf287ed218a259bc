/**
 * `mmk up`, killed before and after each of its writes, in its bodies and hooks, and while it waits.
 */
import { describe, test } from 'node:test'
import { holdLock } from '../helpers/database.js'
import * as sent from '../helpers/sent.js'
import { crash } from './story.js'
import { killAt, leaseIsOver, plain } from './world.js'

/** @import { Point } from './story.js' */

/** Most of what a point takes is waiting for a lease to end. */
const concurrency = 5

/** @type {Pick<Point, 'states' | 'ups'>} */
const untouched = { states: ['pending', 'pending', 'pending'], ups: [0, 0, 0] }
/** @type {Pick<Point, 'states' | 'ups'>} */
const begun = { states: ['interrupted', 'pending', 'pending'], ups: [0, 0, 0] }
/** @type {Pick<Point, 'states' | 'ups'>} */
const unrecorded = { states: ['interrupted', 'pending', 'pending'], ups: [1, 0, 0] }
/** @type {Pick<Point, 'states' | 'ups'>} */
const first = { states: ['applied', 'pending', 'pending'], ups: [1, 0, 0] }
/** @type {Pick<Point, 'states' | 'ups'>} */
const all = { states: ['applied', 'applied', 'applied'], ups: [1, 1, 1] }

/** @type {Pick<Point, 'states' | 'ups'>} */
const secondClaimed = { states: ['applied', 'interrupted', 'pending'], ups: [1, 0, 0] }

/** @type {Point[]} */
const lockPoints = [
  { name: 'before the changelog is read', at: { before: sent.readChangelog }, ...untouched },
  { name: 'before acquire', at: { before: sent.acquire }, ...untouched },
  { name: 'after acquire', at: { after: sent.acquire }, ...untouched },
  { name: 'before the arm', at: { before: sent.armLease }, ...untouched },
  { name: 'after the arm has committed', at: { after: sent.armCommit }, ...untouched },
  { name: 'before the run is taken off the register', at: { before: sent.pull }, ...all },
  { name: 'after the run was taken off the register', at: { after: sent.pull }, ...all },
  { name: 'before the release', at: { before: sent.release }, ...all },
  { name: 'after the release', at: { after: sent.release }, ...all },
]

/** @type {Point[]} */
const entryPoints = [
  { name: 'before the first claim', at: { before: sent.claim('1.js') }, ...untouched },
  { name: 'after the first claim', at: { after: sent.claim('1.js') }, ...begun, stop: true },
  {
    name: 'before the first settle',
    at: { before: sent.settle('1.js') },
    ...unrecorded,
    stop: true,
  },
  { name: 'after the first settle', at: { after: sent.settle('1.js') }, ...first },
  { name: 'between two migrations', at: { before: sent.claim('2.js') }, ...first },
  { name: 'after the last settle', at: { after: sent.settle('3.js') }, ...all },
]

/** Without hooks a record and the next claim are one command. @type {Point[]} */
const advancePoints = [
  {
    name: 'before the first is recorded and the second claimed',
    at: { before: sent.advance('1.js') },
    ...unrecorded,
    stop: true,
  },
  {
    name: 'after the first was recorded and the second claimed',
    at: { after: sent.advance('1.js') },
    ...secondClaimed,
    stop: true,
  },
].map((point) => ({
  ...point,
  arrange: ({ write }) => write('mmk.config.js', 'export default {}'),
}))

/** @type {Point[]} */
const bodyPoints = [
  { name: 'in a body before its write', at: { inside: '1.js: before its write of ups' }, ...begun },
  { name: 'before a body’s write arrives', at: { before: sent.write }, ...begun },
  { name: 'after a body’s write has arrived', at: { after: sent.write }, ...unrecorded },
  {
    name: 'in a body after its write',
    at: { inside: '1.js: after its write of ups' },
    ...unrecorded,
  },
]

/** @type {Point[]} */
const hookPoints = [
  { name: 'in beforeAll', at: { inside: 'beforeAll' }, ...untouched },
  { name: 'in beforeEach', at: { inside: 'beforeEach of 1.js' }, ...untouched },
  { name: 'in afterEach', at: { inside: 'afterEach of 1.js' }, ...first },
  { name: 'in afterAll', at: { inside: 'afterAll' }, ...all },
]

/** It throws in the process that is killed, and not in the next. */
const throwing = plain(
  '1.js',
  `if (process.env.KILL_AT || process.env.MMK_URI.includes('direct')) throw new Error('no')`,
)
/** @type {Pick<Point, 'states' | 'ups'>} */
const failed = { states: ['failed', 'pending', 'pending'], ups: [1, 0, 0] }

/** @type {Point[]} */
const failurePoints = [
  { name: 'before a failure is recorded', at: { before: sent.settle('1.js') }, ...unrecorded },
  {
    name: 'after a failure was recorded',
    at: { after: sent.settle('1.js') },
    ...failed,
    stop: true,
  },
  { name: 'in onError', at: { inside: 'onError of 1.js' }, ...failed },
].map((point) => ({ ...point, files: { '1.js': throwing } }))

/** Statement: as long as this process is the one to be killed, and a minute at most. */
const stay = `for (let i = 0; process.env.MMK_URI.includes('direct') && i < 600; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }`

/** @type {Point[]} */
const renewalPoints = [
  { name: 'before a renewal', at: { before: sent.renew }, ...unrecorded },
  { name: 'after a renewal', at: { after: sent.renew }, ...unrecorded },
].map((point) => ({ ...point, files: { '1.js': plain('1.js', stay) } }))

/** @type {Point[]} */
const waitingPoints = [
  {
    name: 'while it waits for the lock',
    at: { saying: 'Waiting' },
    ...untouched,
    args: ['up', '--wait'],
    arrange: ({ database }) => holdLock(database),
    meanwhile: ({ database }) => database.db.collection('_mmk_locks').deleteMany({}),
  },
]

/** After a first kill, in the body. @type {Point[]} */
const secondPoints = [
  {
    name: 'before the claim of what was interrupted',
    at: { before: sent.claim('1.js') },
    ...unrecorded,
  },
  {
    name: 'after the claim of what was interrupted',
    at: { after: sent.claim('1.js') },
    ...unrecorded,
  },
  {
    name: 'before the settle of what has run twice',
    at: { before: sent.settle('1.js') },
    ...unrecorded,
    ups: [2, 0, 0],
    stop: true,
  },
].map((point) => ({
  ...point,
  args: ['up', '--wait'],
  arrange: async (world, t) => {
    await killAt(t, world, { inside: '1.js: after its write of ups' })
    await leaseIsOver(world.database)
  },
}))

const points = [
  ...lockPoints,
  ...entryPoints,
  ...advancePoints,
  ...bodyPoints,
  ...hookPoints,
  ...failurePoints,
  ...renewalPoints,
  ...waitingPoints,
  ...secondPoints,
]

describe('mmk up', { concurrency }, () => {
  for (const point of points) test(`killed ${point.name}: up`, (t) => crash(t, point))
})
