/** The script for zsh. */
import { quoted, tree } from './tree.js'

/** @import { Command } from 'commander' */
/** @import { Flag } from './tree.js' */

/** @param {Command} program */
export function zsh(program) {
  const { flags, verbs } = tree(program)
  const global = flags.map(zshFlag)
  const cases = verbs.map(({ name, flags: own, words, takesFile }) => {
    const rest = takesFile ? ['"*:migration:_mmk_migrations"'] : []
    if (words.length > 0) rest.unshift(quoted(`2:what:(${words.join(' ')})`))
    const specs = [...own.map(zshFlag), ...global, ...rest]
    return `    ${name}) _arguments ${['"1:command:"', ...specs].join(' \\\n      ')} ;;`
  })
  const names = verbs.map(({ name, about }) => quoted(`${name}:${about.replaceAll(':', '\\:')}`))
  return `#compdef mmk
# Completion of mmk for zsh: put this line into ~/.zshrc, below compinit
#   eval "$(mmk completion zsh)"
_mmk_migrations() {
  local dir=\${opt_args[--dir]:-migrations}
  local -a names
  names=($dir/*(N-.:t))
  compadd -a names
}
_mmk() {
  local -a commands
  commands=(
    ${names.join('\n    ')}
  )
  local verb=\${words[(r)(${verbs.map(({ name }) => name).join('|')})]}
  case $verb in
    '') _arguments ${['"1:command:->command"', ...global].join(' \\\n      ')}
      [[ $state != command ]] || _describe command commands ;;
${cases.join('\n')}
  esac
}
compdef _mmk mmk
`
}

const ZSH_VALUES = { none: '', folder: ':folder:_files -/', file: ':file:_files', other: ':value:' }

/** @param {Flag} flag */
function zshFlag({ long, about, value }) {
  const text = about.replace(/[[\]\\:]/g, '\\$&')
  return quoted(`${long}[${text}]${ZSH_VALUES[value]}`)
}
