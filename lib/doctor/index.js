/**
 * `mmk doctor`: connects as a run would, with both drivers, reads, and writes nothing.
 */
import { connectDriver } from '../driver.js'
import { connect, lock, openEngine, replyValue } from '../engine.js'
import { lockInfo, statusRow } from '../shapes.js'
import { createCauses } from '../thrown.js'
import { serverFacts } from './facts.js'
import { findings } from './findings.js'
import { neighbours } from './neighbours.js'

/** @import { KitOptions } from '../engine.js' */
/** @import { Finding } from './finding.js' */

/**
 * @param {KitOptions} options
 * @returns {Promise<{ findings: Finding[], configFile: string | null }>}
 */
export async function examine(options) {
  const engine = await openEngine({}, options)
  const { config, configFile } = engine.resolved
  try {
    const { transactions } = await connect(engine)
    const connection = await connectDriver({
      config,
      appName: 'mmk/doctor',
      monitored: false,
      causes: createCauses(),
    })
    try {
      const server = await serverFacts(connection, config)
      const { rows, directoryFound } = await replyValue(engine, await engine.core.status())
      const holder = await lock(engine)
      const facts = {
        server,
        config,
        transactions,
        rows: rows.map(statusRow),
        neighbours: await neighbours(engine),
        directoryFound,
        lock: holder && lockInfo(holder),
      }
      return { findings: findings(facts), configFile }
    } finally {
      if (connection.ours) await connection.client.close()
    }
  } finally {
    await engine.core.disconnect()
  }
}
