/**
 * An app instance as the demo starts three of them: it migrates on boot and then would serve. The
 * configuration comes from the environment, as it does for `mmk`.
 */
import { runMigrations } from '../lib/index.js'

const { applied, waited, waitedMs } = await runMigrations({ onLockHeld: 'wait' })
const did = applied.length > 0 ? `applied ${applied.length} migrations` : 'found nothing left to do'
const wait = waited ? ` after waiting ${(waitedMs / 1000).toFixed(1)}s for its turn` : ''
console.log(`ready to serve: ${did}${wait}`)
