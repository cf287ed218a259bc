/**
 * Growth as a picture: both axes logarithmic, so that linear growth is a straight line of slope one,
 * and anything worse is steeper.
 *
 * Drawn by Apache ECharts, which makes an SVG without a browser or a canvas. It is heavy on the disk
 * (67 MB) but three packages in all, and nothing but `npm run bench` and its test loads it.
 */
import { LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'
import { median } from './stats.js'

/** @import { Result, Row } from './measurement.d.ts' */
/** @import { Labels } from './table.js' */

use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])

const columns = /** @type {const} */ (['ours', 'oneX', 'migrateMongo'])
const picture = { width: 720, height: 420 }
/** Told apart without red and green, and in grey. */
const color = ['#0b6e4f', '#c8553d', '#6b7a8f']

/**
 * @param {Result} result of the measurement `boot`
 * @param {Labels} labels
 * @returns {{ name: string, title: string, svg: string }[]}
 */
export function growthPlots({ rows }, labels) {
  return [
    plot('boot-time', 'Boot with nothing pending', 'ms', points(rows, 'time'), labels),
    plot('boot-memory', 'Peak memory of that process', 'MB', points(rows, 'memory'), labels),
  ]
}

/**
 * @param {readonly Row[]} rows
 * @param {string} kind
 * @returns {Record<typeof columns[number], [number, number][]>} applied files and the median
 */
function points(rows, kind) {
  const wanted = rows.filter(({ id }) => id.startsWith(`${kind}-`))
  /** @param {typeof columns[number]} column */
  const of = (column) =>
    wanted.flatMap(({ id, samples }) => {
      const own = samples[column]
      /** @type {[number, number][]} */
      const point = own?.length ? [[Number(id.slice(kind.length + 1)), median(own)]] : []
      return point
    })
  return { ours: of('ours'), oneX: of('oneX'), migrateMongo: of('migrateMongo') }
}

/**
 * @param {string} name
 * @param {string} title
 * @param {string} unit
 * @param {ReturnType<typeof points>} series
 * @param {Labels} labels
 */
function plot(name, title, unit, series, labels) {
  const chart = init(null, null, { renderer: 'svg', ssr: true, ...picture })
  const axis = { type: /** @type {const} */ ('log'), nameLocation: /** @type {const} */ ('middle') }
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    color,
    title: { text: title, left: 'center' },
    legend: { bottom: 0 },
    grid: { left: 70, right: 30, top: 50, bottom: 80 },
    xAxis: { ...axis, name: 'applied files', nameGap: 30, min: 10 },
    yAxis: { ...axis, name: unit, nameGap: 45 },
    series: columns.map((column) => ({
      type: /** @type {const} */ ('line'),
      name: labels[column],
      data: series[column],
      symbolSize: 8,
    })),
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return { name, title: `${title}, ${unit}`, svg }
}
