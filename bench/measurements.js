/** Every measurement, in the order of the report. */
import { boot } from './measure/boot.js'
import { commands } from './measure/commands.js'
import { crowd } from './measure/crowd.js'
import { handOver } from './measure/hand-over.js'
import { heartbeat } from './measure/heartbeat.js'
import { migrations } from './measure/migrations.js'
import { size } from './measure/size.js'
import { start } from './measure/start.js'

/** @type {readonly import('./measurement.d.ts').Measurement[]} */
export const measurements = [start, boot, commands, migrations, handOver, crowd, heartbeat, size]
