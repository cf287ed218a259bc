/** `mmk completion`. */
import { snapshots } from '../helpers/snapshots.js'

snapshots('completion', {
  'for bash': { args: ['completion', 'bash'] },
  'for zsh': { args: ['completion', 'zsh'] },
  'for fish': { args: ['completion', 'fish'] },
  'for another shell': { args: ['completion', 'tcsh'] },
})
