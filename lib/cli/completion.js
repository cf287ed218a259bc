/**
 * Completion scripts for shells, made of commander's own tree of commands, so that they know what the
 * program knows. Pure: a program in, a script out.
 *
 * The scripts start no process: what they offer is written in them, and the names of migrations they
 * read from the directory (`--dir`, else `migrations`).
 */
import { bash } from './completion/bash.js'
import { fish } from './completion/fish.js'
import { zsh } from './completion/zsh.js'

/** @import { Command } from 'commander' */

/** @type {Readonly<Record<string, (program: Command) => string>>} by shell */
export const SCRIPTS = { bash, zsh, fish }
