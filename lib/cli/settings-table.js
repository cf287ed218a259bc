/** The table of `mmk config`. Pure: settings in, text out. */
import { escapeText } from '../text.js'
import { gridText, NOTHING } from './grid.js'

/** @import { Setting } from '../config/shown.js' */

/**
 * @param {Setting[]} settings
 * @param {{ colors: import('./grid.js').Colors, width?: number | undefined }} options
 * @returns {string}
 */
export function settingsText(settings, { colors, width }) {
  const rows = settings.map(({ key, shown, from, source }) => {
    const paint = source === 'default' ? colors.dim : String
    return [key, shown ?? NOTHING, from].map((text) => ({ text: escapeText(text), paint }))
  })
  return gridText(['Setting', 'Value', 'From'], rows, { colors, width })
}
