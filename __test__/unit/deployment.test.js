import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { refuseOtherDeployment } from '../../lib/deployment.js'

/** @typedef {import('../../lib/contract.d.ts').Server} Server */

/** @type {Record<string, Server>} */
const SERVERS = {
  member: { transactions: true, setName: 'rs0', process: 'aa' },
  'another member': { transactions: true, setName: 'rs0', process: 'bb' },
  'a member before 4.4': { transactions: true, setName: 'rs0', process: null },
  'a member of another set': { transactions: true, setName: 'rs1', process: 'aa' },
  standalone: { transactions: false, setName: null, process: 'aa' },
  'another standalone': { transactions: false, setName: null, process: 'cc' },
  router: { transactions: true, setName: null, process: null },
}

/** @param {Server} server @returns {any} a database there */
function on({ transactions, setName, process }) {
  const router = transactions && setName === null
  return {
    command: async () => ({
      ...(router && {
        msg: 'isdbgrid',
        topologyVersion: { processId: { toHexString: () => 'dd' } },
      }),
      ...(setName && { setName }),
      ...(process && { topologyVersion: { processId: { toHexString: () => process } } }),
    }),
  }
}

/**
 * @param {string} mine
 * @param {string[]} theirs what each look finds
 */
async function refused(mine, ...theirs) {
  const ask = async () => SERVERS[theirs.length > 1 ? (theirs.shift() ?? '') : (theirs[0] ?? '')]
  return refuseOtherDeployment(
    on(/** @type {Server} */ (SERVERS[mine])),
    /** @type {any} */ (ask),
  ).then(
    () => false,
    ({ code }) => code === 'CONFIG_INVALID',
  )
}

describe('two connections', () => {
  it('lead to one deployment where nothing says otherwise', async () => {
    for (const name of Object.keys(SERVERS)) assert.equal(await refused(name, name), false, name)
    assert.equal(await refused('member', 'a member before 4.4'), false)
  })

  it('lead to two where set, kind or process differ', async () => {
    for (const [one, other] of [
      ['member', 'a member of another set'],
      ['member', 'another member'],
      ['member', 'standalone'],
      ['standalone', 'another standalone'],
      ['router', 'standalone'],
      ['router', 'member'],
    ]) {
      assert.equal(await refused(one ?? '', other ?? ''), true, `${one}, ${other}`)
      assert.equal(await refused(other ?? '', one ?? ''), true, `${other}, ${one}`)
    }
  })

  it('are looked at again, because an election between two questions looks like a difference', async () => {
    assert.equal(await refused('member', 'another member', 'member'), false)
  })
})
