/** The script for bash. */
import { tree } from './tree.js'

/** @import { Command } from 'commander' */
/** @import { Flag } from './tree.js' */

/** @param {Command} program */
export function bash(program) {
  const { flags, verbs } = tree(program)
  const all = [...flags, ...verbs.flatMap((verb) => verb.flags)]
  const named = (/** @type {Flag['value']} */ kind) => unique(all, kind).join('|')
  const cases = verbs.map(({ name, flags: own, words, takesFile }) => {
    const offered = [...words, ...own.map(({ long }) => long)].join(' ')
    return `    ${name}) words="${offered}"; files=${takesFile ? 1 : 0} ;;`
  })
  return `# Completion of mmk for bash: put this line into ~/.bashrc
#   eval "$(mmk completion bash)"
_mmk() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]}
  local verb='' dir=migrations words='' files=0 i word path
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
    --dir) dir=\${COMP_WORDS[++i]} ;;
    ${named('file')}|${named('other')}) ((i++)) ;;
    -*) ;;
    *) [[ -n $verb ]] || verb=\${COMP_WORDS[i]} ;;
    esac
  done
  case $prev in
  ${named('folder')})
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$cur")
    compopt -o filenames 2>/dev/null
    return ;;
  ${named('file')})
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
    return ;;
  ${named('other')}) return ;;
  esac
  case $verb in
    '') words="${verbs.map(({ name }) => name).join(' ')}" ;;
${cases.join('\n')}
  esac
  words="$words ${flags.map(({ long }) => long).join(' ')}"
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$cur")
  if ((files)) && [[ $cur != -* ]]; then
    for path in "$dir"/"$cur"*; do
      [[ ! -f $path ]] || COMPREPLY+=("\${path##*/}")
    done
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _mmk mmk
`
}

/** @param {Flag[]} flags @param {Flag['value']} kind */
function unique(flags, kind) {
  return [...new Set(flags.filter(({ value }) => value === kind).map(({ long }) => long))]
}
