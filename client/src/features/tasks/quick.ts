/**
 * The line for a new task: `Call Müller @writer !high #Marketing`. Pure.
 *
 * Q1 Only what is known is taken out of the text; `!important`, `#1` and addresses stay in the title.
 * Q2 The title is never empty: a line of nothing but marks is a title.
 */
import { type Mentionable, mentionsIn } from '../comments/mentions.ts'
import { type Assignee, cleanTitle, PRIORITIES, type TaskPriority } from './model.ts'

export interface QuickContext {
  readonly mentionable: readonly Mentionable[]
  readonly streams: readonly { readonly id: string; readonly name: string }[]
}

export interface QuickTask {
  readonly title: string
  readonly assignee?: Assignee
  readonly priority?: TaskPriority
  readonly stream_id?: string
}

export function parseQuick(line: string, { mentionable, streams }: QuickContext): QuickTask {
  let rest = line
  const found: { assignee?: Assignee; priority?: TaskPriority; stream_id?: string } = {}
  const cut = (start: number, end: number) => {
    rest = `${rest.slice(0, start)} ${rest.slice(end)}`
  }
  const mention = mentionsIn(rest, mentionable)[0]
  if (mention) {
    const { actor } = mention.who
    found.assignee = { type: actor.kind === 'agent' ? 'agent' : 'human', id: actor.id }
    cut(mention.start, mention.end)
  }
  const priority = /(?:^|\s)!(\p{L}+)(?=\s|$)/u.exec(rest)
  const named = PRIORITIES.find((each) => each === priority?.[1]?.toLowerCase())
  if (priority && named) {
    found.priority = named
    cut(priority.index, priority.index + priority[0].length)
  }
  const byLength = [...streams].sort((a, b) => b.name.length - a.name.length)
  for (const stream of byLength) {
    const mark = `#${stream.name}`.toLowerCase()
    const at = ` ${rest.toLowerCase()} `.indexOf(` ${mark} `)
    if (at < 0) continue
    found.stream_id = stream.id
    cut(at, at + mark.length)
    break
  }
  const title = cleanTitle(rest)
  return title === '' ? { title: cleanTitle(line) } : { title, ...found }
}
