/**
 * What there is to complete, read off commander's tree of commands.
 */

/** @import { Command, Option } from 'commander' */

/**
 * @typedef {{ long: string, about: string, value: 'none' | 'folder' | 'file' | 'other' }} Flag
 * @typedef {{ name: string, about: string, flags: Flag[], words: string[], takesFile: boolean }} Verb
 */

/** Flags whose value is a path. */
const PATHS = new Map(
  /** @type {const} */ ([
    ['--dir', 'folder'],
    ['--config', 'file'],
    ['--template', 'file'],
  ]),
)

/**
 * @param {Command} program
 * @returns {{ flags: Flag[], verbs: Verb[] }} the flags of all commands, and each command
 */
export function tree(program) {
  const verbs = program.commands.map((command) => ({
    name: command.name(),
    about: command.description(),
    flags: flagsOf(command),
    words: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
    takesFile: command.registeredArguments.some((argument) => argument.name() === 'file'),
  }))
  return { flags: flagsOf(program), verbs }
}

/** @param {Command} command @returns {Flag[]} */
function flagsOf({ options }) {
  return options
    .filter((option) => !option.hidden)
    .map((option) => ({
      long: option.long ?? option.flags,
      about: option.description,
      value: valueKind(option),
    }))
}

/** A value that is only taken after `=` takes no word of its own. @param {Option} option */
function valueKind({ long, required }) {
  return required ? (PATHS.get(/** @type {any} */ (long)) ?? 'other') : 'none'
}

/** Single quotes, as all three shells take them. @param {string} text */
export function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`
}
