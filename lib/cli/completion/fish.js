/** The script for fish. */
import { quoted, tree } from './tree.js'

/** @import { Command } from 'commander' */
/** @import { Flag } from './tree.js' */

/** @param {Command} program */
export function fish(program) {
  const { flags, verbs } = tree(program)
  const isVerb = `__fish_seen_subcommand_from ${verbs.map(({ name }) => name).join(' ')}`
  const offered = verbs.map(({ name, about }) => {
    return `complete -c mmk -f -n 'not ${isVerb}' -a ${name} -d ${quoted(about)}`
  })
  const own = verbs.flatMap(({ name, flags: its, words, takesFile }) => {
    const when = `-n '__fish_seen_subcommand_from ${name}'`
    return [
      ...words.map((word) => `complete -c mmk -f ${when} -a ${word}`),
      ...(takesFile ? [`complete -c mmk -f ${when} -a '(__mmk_migrations)'`] : []),
      ...its.map((flag) => `complete -c mmk ${when} ${fishFlag(flag)}`),
    ]
  })
  return `# Completion of mmk for fish: put this line into ~/.config/fish/config.fish
#   mmk completion fish | source
function __mmk_migrations
  set -l dir migrations
  set -l words (commandline -opc)
  if set -l at (contains -i -- --dir $words)
    set dir $words[(math $at + 1)]
  end
  for path in $dir/*
    test -f $path; and basename $path
  end
end
${[...offered, ...flags.map((flag) => `complete -c mmk ${fishFlag(flag)}`), ...own].join('\n')}
`
}

const FISH_VALUES = {
  none: '-f',
  folder: '-x -a "(__fish_complete_directories)"',
  file: '-r',
  other: '-x',
}

/** @param {Flag} flag */
function fishFlag({ long, about, value }) {
  return `${FISH_VALUES[value]} -l ${long.replace(/^--/, '')} -d ${quoted(about)}`
}
