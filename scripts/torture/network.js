/**
 * The network between the members and the workers of a torture: each member is reached through a
 * small TCP proxy, so that a cut needs no rights over the machine's own network.
 *
 * A cut is silent: connections stay open and carry nothing, new ones are accepted and stay mute.
 * Healing delivers what was held back, late, or drops the connections, as a real network may do
 * either. Who is at the other end of a connection is asked of Linux's /proc.
 */
import { readdir, readFile, readlink } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { refusalOf } from '../refusal.js'
import { onMessages } from '../wire-messages.js'

/** @typedef {import('node:net').Socket} Socket */

/**
 * @typedef {object} Link
 * @property {Socket} near whoever connected
 * @property {import('node:stream').Writable} into what it says is put into: the member, or somebody
 *   who refuses a part of it
 * @property {Socket} far the member
 * @property {Set<Cut>} cuts those that hold it now
 *
 * @typedef {object} Door the proxy of one member
 * @property {number} port where it is reached
 * @property {Set<Link>} links
 * @property {Set<Cut>} cuts
 * @property {import('node:net').Server} server
 *
 * @typedef {object} Cut
 * @property {ReadonlySet<number>} pids whose connections are held
 *
 * @typedef {(command: string) => void} OnRefused is told what was refused
 */

/**
 * @param {number} target port of a member
 * @param {OnRefused} [onRefused] the member seems to take no update pipelines, and nothing computed
 * @returns {Promise<Door>}
 */
export async function openDoor(target, onRefused) {
  /** @type {Door} */
  const door = { port: 0, links: new Set(), cuts: new Set(), server: createServer() }
  door.server = createServer({ pauseOnConnect: true }, (near) => {
    const far = connect(target, '127.0.0.1')
    const into = onRefused ? refusing(near, far, onRefused) : far
    const link = { near, into, far, cuts: new Set() }
    door.links.add(link)
    for (const socket of [near, far]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.once('close', () => {
        door.links.delete(link)
        near.destroy()
        far.destroy()
      })
    }
    hold(door, link).then(() => carry(link))
  })
  await new Promise((resolve, reject) => {
    door.server.once('error', reject).listen(0, '127.0.0.1', () => resolve(undefined))
  })
  const address = door.server.address()
  door.port = typeof address === 'object' && address ? address.port : 0
  return door
}

/**
 * Nobody waits for another reply on a connection on which an update is sent, so that ours can't fall
 * into the middle of one.
 *
 * @param {Socket} near
 * @param {Socket} far
 * @param {OnRefused} onRefused
 */
function refusing(near, far, onRefused) {
  const inlet = new PassThrough()
  onMessages(inlet, (message) => {
    const refusal = refusalOf(message)
    if (!refusal) return void far.write(message)
    onRefused(refusal.command)
    near.write(refusal.reply)
  })
  return inlet
}

/** @param {Door} door */
export function closeDoor(door) {
  door.server.close()
  for (const { near } of door.links) near.destroy()
}

/**
 * Begins a cut: what these processes say to these members, and hear from them, is held back.
 *
 * @param {readonly Door[]} doors
 * @param {readonly number[]} pids
 * @returns {Promise<(late: boolean) => void>} heals it; `late`: what was held back arrives after all
 */
export async function cut(doors, pids) {
  /** @type {Cut} */
  const begun = { pids: new Set(pids) }
  for (const door of doors) door.cuts.add(begun)
  const ports = await portsOf(begun.pids)
  for (const link of doors.flatMap((door) => [...door.links])) {
    if (ports.has(link.near.remotePort ?? 0)) holdBack(link, begun)
  }
  return (late) => {
    for (const door of doors) {
      door.cuts.delete(begun)
      for (const link of door.links) {
        if (!link.cuts.delete(begun)) continue
        if (!late) link.near.destroy()
        else if (link.cuts.size === 0) carry(link)
      }
    }
  }
}

/**
 * @param {Link} link
 * @param {Cut} by
 */
function holdBack(link, by) {
  link.cuts.add(by)
  link.near.unpipe(link.into).pause()
  link.far.unpipe(link.near).pause()
}

/** @param {Link} link */
function carry({ near, into, far, cuts }) {
  if (cuts.size > 0) return
  near.pipe(into)
  far.pipe(near)
}

/**
 * A new connection meets the cuts that are in force.
 * @param {Door} door
 * @param {Link} link
 */
async function hold(door, link) {
  for (const each of [...door.cuts]) {
    const ports = await portsOf(each.pids)
    // It may have been healed while we looked.
    if (ports.has(link.near.remotePort ?? 0) && door.cuts.has(each)) link.cuts.add(each)
  }
}

/**
 * @param {ReadonlySet<number>} pids
 * @returns {Promise<Set<number>>} the local ports of their TCP connections
 */
async function portsOf(pids) {
  const owned = new Set((await Promise.all([...pids].map(socketsOf))).flat())
  const table = await readFile('/proc/net/tcp', 'utf8')
  const rows = table
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
  const own = rows.filter((columns) => owned.has(columns[9] ?? ''))
  return new Set(own.map((columns) => Number.parseInt(columns[1]?.split(':')[1] ?? '0', 16)))
}

/** @param {number} pid @returns {Promise<string[]>} inodes; none when the process has ended */
async function socketsOf(pid) {
  const folder = `/proc/${pid}/fd`
  const descriptors = await readdir(folder).catch(() => [])
  const targets = await Promise.all(
    descriptors.map((name) => readlink(`${folder}/${name}`).catch(() => '')),
  )
  return targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? [])
}
