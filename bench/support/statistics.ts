/** A straight line through noisy measurements: is it rising? */
export interface Slope {
  /** Per unit of x, by least squares. */
  readonly value: number
  /** What the slope surely is at least: two standard errors below `value`. Above 0: it rises, and not by chance. */
  readonly least: number
}

export function slopeOf(points: readonly (readonly [x: number, y: number])[]): Slope {
  const n = points.length
  if (n < 3) return { value: Number.NaN, least: Number.NaN }
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / n
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const value = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread
  const rest = points.reduce((sum, [x, y]) => sum + (y - meanY - value * (x - meanX)) ** 2, 0)
  return { value, least: value - 2 * Math.sqrt(rest / (n - 2) / spread) }
}
