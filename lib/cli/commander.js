/**
 * The parser of command lines. It is CommonJS, and an import would read all its sources for the names
 * that they export before it runs them, which takes half as long again.
 */
import { createRequire } from 'node:module'

/** @type {typeof import('commander')} */
const commander = createRequire(import.meta.url)('commander')

export const { Argument, Command, CommanderError, InvalidArgumentError, Option } = commander
