/**
 * `npm run demo`: the main job, on a real MongoDB that lives only as long as the demo. Two deploys
 * collide, then three app instances boot at once, then `mmk status` shows what is there.
 *
 * Ends by itself: every process it starts has a deadline.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { startMongod } from './mongod.js'
import { isMain, main, neutralEnv, root, ScriptError } from './process.js'
import { setup } from './setup.js'

const deadlineMs = 60_000
const mmk = join(root, 'bin', 'mmk.js')
const app = join(root, 'scripts', 'demo-app.js')

/**
 * A process whose lines are printed behind its label.
 *
 * @param {string} label
 * @param {readonly string[]} args of node
 * @param {{ MMK_URI: string, MMK_DB: string }} database
 * @returns {Promise<number>} the exit code
 */
async function labelled(label, args, database) {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...neutralEnv(), ...database },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: deadlineMs,
  })
  const ended = new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)))
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => console.log(`  ${label} │ ${line}`))
  }
  return ended
}

/** @param {string} text */
const say = (text) => console.log(`\n${text}`)

/** @param {string} uri */
async function collidingDeploys(uri) {
  const database = { MMK_URI: uri, MMK_DB: 'shop' }
  say('Two deploys run `mmk up` on one database, the second one two seconds later:')
  const first = labelled('deploy-a', [mmk, 'up'], database)
  await delay(2000)
  const second = await labelled('deploy-b', [mmk, 'up'], database)
  const codes = `deploy-a ended with exit code ${await first}, deploy-b with ${second}`
  if ((await first) !== 0 || second !== 3) throw new ScriptError(`Not as it should be: ${codes}`)
  say(`${codes} (the lock is held). Each migration was applied once.`)
}

/** @param {string} uri */
async function bootingApps(uri) {
  const database = { MMK_URI: uri, MMK_DB: 'shop_staging' }
  say("Three app instances boot on an empty database, each with onLockHeld: 'wait':")
  const labels = ['app-1', 'app-2', 'app-3']
  const codes = await Promise.all(labels.map((label) => labelled(label, [app], database)))
  if (codes.some((code) => code !== 0)) throw new ScriptError('An app instance failed to boot')
  say('What that database has now, as `mmk status` shows it:')
  await labelled('status', [mmk, 'status'], database)
}

async function demo() {
  await setup()
  const server = await startMongod()
  try {
    say(`A MongoDB ${server.version} of our own is up, a replica set of one member.`)
    await collidingDeploys(server.uri)
    await bootingApps(server.uri)
  } finally {
    await server.stop()
  }
  say('The server is stopped and its data removed.')
}

if (isMain(import.meta.url)) main(demo)
