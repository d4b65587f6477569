/** Line and word differences between two texts, by Myers' O(ND) algorithm. Pure. */
export type DiffLine = {
  kind: 'same' | 'removed' | 'added'
  text: string
  /** 1-based numbers in the old and the new text. */
  before: number | null
  after: number | null
  /** In a changed line, the parts that differ, where the line has a partner. */
  parts?: { text: string; changed: boolean }[] | undefined
}

type Edit = { kind: 'same' | 'removed' | 'added'; a: number; b: number }

/** Beyond this many differences the texts count as wholly different: the cost is D². */
const MAX_D = 2000

function myers(a: readonly string[], b: readonly string[]): Edit[] {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const n = a.length - head - tail
  const m = b.length - head - tail
  const edits: Edit[] = []
  for (let i = 0; i < head; i++) edits.push({ kind: 'same', a: i, b: i })
  edits.push(
    ...middle(a.slice(head, head + n), b.slice(head, head + m)).map((e) => ({ ...e, a: e.a + head, b: e.b + head })),
  )
  for (let i = 0; i < tail; i++) edits.push({ kind: 'same', a: head + n + i, b: head + m + i })
  return edits
}

function middle(a: readonly string[], b: readonly string[]): Edit[] {
  const n = a.length
  const m = b.length
  const replaced = (): Edit[] => [
    ...a.map((_, i): Edit => ({ kind: 'removed', a: i, b: 0 })),
    ...b.map((_, i): Edit => ({ kind: 'added', a: n, b: i })),
  ]
  if (n === 0 || m === 0) return replaced()
  const trace: Map<number, number>[] = []
  const v = new Map<number, number>([[1, 0]])
  const limit = Math.min(n + m, MAX_D)
  const at = (map: Map<number, number>, k: number) => map.get(k) ?? -1
  for (let d = 0; d <= limit; d++) {
    trace.push(new Map(v))
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && at(v, k - 1) < at(v, k + 1)) ? at(v, k + 1) : at(v, k - 1) + 1
      while (x < n && x - k < m && a[x] === b[x - k]) x++
      v.set(k, x)
      if (x >= n && x - k >= m) return backtrack(trace, n, m)
    }
  }
  return replaced()
}

function backtrack(trace: readonly Map<number, number>[], n: number, m: number): Edit[] {
  const edits: Edit[] = []
  let x = n
  let y = m
  for (let d = trace.length - 1; d >= 0; d--) {
    const v = trace[d] ?? new Map<number, number>()
    const k = x - y
    const down = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1))
    const previous = down ? k + 1 : k - 1
    const px = d === 0 ? 0 : (v.get(previous) ?? 0)
    const py = px - previous
    while (x > px && y > (d === 0 ? 0 : py)) edits.push({ kind: 'same', a: --x, b: --y })
    if (d > 0) {
      if (down) edits.push({ kind: 'added', a: x, b: --y })
      else edits.push({ kind: 'removed', a: --x, b: y })
    }
  }
  return edits.reverse()
}

function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []
}

/** The same line before and after, as parts; nothing when they have too little in common to compare. */
function wordParts(before: string, after: string): [DiffLine['parts'], DiffLine['parts']] {
  const a = words(before)
  const b = words(after)
  const edits = myers(a, b)
  const kept = edits.filter((e) => e.kind === 'same' && (a[e.a] ?? '').trim() !== '').length
  if (kept * 3 < Math.max(a.length, b.length) / 2) return [undefined, undefined]
  const build = (side: 'removed' | 'added'): DiffLine['parts'] => {
    const parts: { text: string; changed: boolean }[] = []
    for (const edit of edits) {
      if (edit.kind !== 'same' && edit.kind !== side) continue
      const text = (side === 'removed' ? a[edit.a] : b[edit.b]) ?? ''
      const changed = edit.kind === side
      const last = parts.at(-1)
      if (last && last.changed === changed) last.text += text
      else parts.push({ text, changed })
    }
    return parts
  }
  return [build('removed'), build('added')]
}

const toLines = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

export function diffLines(before: string, after: string): DiffLine[] {
  const a = toLines(before)
  const b = toLines(after)
  const lines = myers(a, b).map(
    (e): DiffLine => ({
      kind: e.kind,
      text: (e.kind === 'added' ? b[e.b] : a[e.a]) ?? '',
      before: e.kind === 'added' ? null : e.a + 1,
      after: e.kind === 'removed' ? null : e.b + 1,
    }),
  )
  // Pair the removed lines of each changed block with its added lines, in order.
  for (let i = 0; i < lines.length; ) {
    if (lines[i]?.kind === 'same') {
      i++
      continue
    }
    let end = i
    while (end < lines.length && lines[end]?.kind !== 'same') end++
    const block = lines.slice(i, end)
    const removed = block.filter((l) => l.kind === 'removed')
    const added = block.filter((l) => l.kind === 'added')
    lines.splice(i, end - i, ...removed, ...added)
    removed.forEach((line, at) => {
      const partner = added[at]
      if (partner) [line.parts, partner.parts] = wordParts(line.text, partner.text)
    })
    i = end
  }
  return lines
}
