/** What `hq doctor` and `hq audit` find, for people and as JSON. */

/** `ok` and `info` need nothing; `warning` wants a look; `problem` has to be put right. */
export type Severity = 'ok' | 'info' | 'warning' | 'problem'

export interface Finding {
  /** What was looked at. */
  readonly subject: string
  readonly severity: Severity
  /** What was found. */
  readonly says: string
  /** What to do about it; with every warning and problem. */
  readonly advice?: string
}

const ORDER: readonly Severity[] = ['problem', 'warning', 'info', 'ok']
const SIGN: Readonly<Record<Severity, string>> = { ok: 'ok', info: 'note', warning: 'WARN', problem: 'FAIL' }

export const worst = (findings: readonly Finding[]): Severity =>
  ORDER.find((severity) => findings.some((finding) => finding.severity === severity)) ?? 'ok'

/** The worst first; among equals in the order in which they were looked at. */
export const sorted = (findings: readonly Finding[]): Finding[] =>
  [...findings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity))

export function printFindings(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ subject, severity, says, advice }) => [
    `${SIGN[severity].padEnd(5)} ${subject}: ${says}`,
    ...(advice ? [`      → ${advice}`] : []),
  ])
  const count = (severity: Severity): number => findings.filter((finding) => finding.severity === severity).length
  const counts = [
    [count('problem'), 'problem'],
    [count('warning'), 'warning'],
  ] as const
  const sum = counts
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${number} ${word}${number === 1 ? '' : 's'}`)
    .join(', ')
  return [...lines, '', sum === '' ? 'Nothing to put right.' : `${sum}.`].join('\n')
}
