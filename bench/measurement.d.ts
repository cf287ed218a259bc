/** The shapes in which measurements report. Types only. */
import type { Stage } from './stage.js'
import type { ToolId } from './tools.js'

export interface Context {
  stage: Stage
  /** A small run that shows that everything works; its figures mean little. */
  quick: boolean
  /** Asked for by hand, instead of each measurement's own. */
  rounds?: number
}

/** `node` is an empty Node process, the base of all processes. */
export type Column = ToolId | 'node'

export interface Row {
  /** Unique in its measurement. */
  id: string
  work: string
  unit: 'ms' | 'MB' | 'commands' | '%' | 'runs'
  /** In the order of the rounds, so that those of two columns make pairs. */
  samples: Partial<Record<Column, number[]>>
  /** `tail`: the slow ones are what matters, so p50 and p95 instead of the median and the least. */
  show?: 'median' | 'tail'
  /** What the figure of a column is made of. */
  detail?: Partial<Record<Column, string>>
}

export interface Measurement {
  name: string
  title: string
  /** How it is measured and what is left out, in a few sentences. */
  about: string
  run(context: Context): Promise<Row[]>
}

export interface Result {
  name: string
  title: string
  about: string
  seconds: number
  rows: Row[]
}
