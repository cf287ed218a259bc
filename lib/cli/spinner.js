/**
 * The line that shows what is running, on a terminal only.
 *
 * It is our own because it must leave signals alone: a spinner that exits the process on Ctrl-C would
 * leave the migration lock behind. Whoever writes to stdout or stderr meanwhile writes over an
 * erased line, and the next frame comes below it.
 */
import { escapeText, formatAge } from '../text.js'
import { stderrColors } from './output.js'

/**
 * @typedef {{
 *   running: string | null
 *   onStart(name: string, direction: 'up' | 'down'): void
 *   onStop(): void
 * }} Progress
 */

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 80
const ERASE_LINE = '\r\u001b[2K'

/** @param {'up' | 'down'} direction */
const verb = (direction) => (direction === 'up' ? 'Applying' : 'Reverting')

/**
 * Cuts a line to the terminal's width: a wrapped one could not be erased.
 * @param {string} text
 */
function fit(text) {
  const room = Math.max(10, (process.stderr.columns || 80) - 3)
  const chars = [...text]
  return chars.length <= room ? text : `${chars.slice(0, room - 1).join('')}…`
}

/**
 * Erases our line before each write of somebody else.
 * @param {NodeJS.WriteStream} stream
 * @param {() => void} erase
 * @returns {() => void} undo
 */
function beforeWrites(stream, erase) {
  const write = stream.write
  stream.write = /** @type {typeof write} */ (
    (/** @type {Parameters<typeof write>} */ ...args) => {
      erase()
      return write.apply(stream, args)
    }
  )
  return () => {
    stream.write = write
  }
}

/**
 * Shows `label` and the time that it takes until the returned function is called.
 * @param {string} label
 * @returns {() => void} stop
 */
export function startSpinner(label) {
  const draw = process.stderr.write.bind(process.stderr)
  const { cyan } = stderrColors()
  const startedAt = performance.now()
  let frame = 0
  let drawn = false
  const erase = () => {
    if (drawn) draw(ERASE_LINE)
    drawn = false
  }
  const tick = () => {
    const elapsed = formatAge(performance.now() - startedAt)
    erase()
    draw(`${cyan(FRAMES[frame])} ${fit(`${label} ${elapsed}`)}`)
    drawn = true
    frame = (frame + 1) % FRAMES.length
  }
  const undo = [process.stdout, process.stderr].map((stream) => beforeWrites(stream, erase))
  const timer = setInterval(tick, FRAME_MS).unref()
  tick()
  return () => {
    clearInterval(timer)
    erase()
    for (const restore of undo) restore()
  }
}

/** Is there a terminal that may be drawn on? */
export function canSpin() {
  return process.stderr.isTTY === true && !process.env.CI && process.env.TERM !== 'dumb'
}

/**
 * 1.x's progress callbacks as a spinner; without a terminal the log lines are enough. `running` names
 * the migration between the two, for whoever has to say where a process ended.
 * @returns {Progress}
 */
export function spinnerProgress() {
  /** @type {(() => void) | null} */
  let stop = null
  /** @type {Progress} */
  const progress = {
    running: null,
    onStart(name, direction) {
      progress.onStop()
      progress.running = name
      if (canSpin()) stop = startSpinner(`${verb(direction)} ${escapeText(name)}`)
    },
    onStop() {
      stop?.()
      stop = null
      progress.running = null
    },
  }
  return progress
}
