/** Colours for terminals. Loaded as `cli/commander.js` is, and for its reason. */
import { createRequire } from 'node:module'

/** @type {typeof import('picocolors')} */
const picocolors = createRequire(import.meta.url)('picocolors')

export const { createColors } = picocolors
