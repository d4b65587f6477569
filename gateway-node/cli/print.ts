/** The answers of the local API as text for a terminal. Control characters of what others wrote are taken out: they could rewrite the screen. */
type Row = Record<string, unknown>

const rows = (value: unknown): Row[] => (Array.isArray(value) ? (value as Row[]) : [])
const clean = (value: unknown): string => {
  let text = ''
  for (const char of String(value ?? '')) {
    const code = char.codePointAt(0) ?? 0
    if (code === 9 || code === 10 || (code >= 32 && (code < 127 || code > 159))) text += char
  }
  return text
}
const words = (value: unknown): string => clean(value).replaceAll('_', ' ')
const indent = (text: string): string =>
  text
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')

export function printTasks(value: unknown, none: string): string {
  const tasks = rows(value)
  return tasks.length === 0 ? none : tasks.map(taskLine).join('\n')
}

function taskLine(task: Row): string {
  const notes = [
    words(task['status']),
    words(task['priority']),
    task['due_date'] ? `due ${clean(task['due_date']).slice(0, 10)}` : '',
    task['review'] ? `review: ${words(task['review'])}` : '',
    rows(task['waiting_for']).length > 0 ? `waits for ${(task['waiting_for'] as unknown[]).map(clean).join(', ')}` : '',
  ]
  return `${clean(task['id'])}  ${clean(task['title'])}  (${notes.filter(Boolean).join(', ')})`
}

export function printTask(task: Row): string {
  const parts = [taskLine(task)]
  if (task['description']) parts.push(indent(clean(task['description'])))
  const subtasks = rows(task['subtasks'])
  if (subtasks.length > 0)
    parts.push(
      'Subtasks:',
      ...subtasks.map((each) => `  ${clean(each['id'])}  ${clean(each['title'])}  (${words(each['status'])})`),
    )
  for (const link of rows(task['deliverables'])) {
    parts.push(
      `Deliverable “${clean(link['label'])}”: ${words(link['review_status'])}, round ${clean(link['review_round'])}`,
    )
    if (link['review_note']) parts.push(indent(clean(link['review_note'])))
  }
  for (const comment of rows(task['comments'])) {
    parts.push(
      `${clean(comment['author'])}, ${clean(comment['created_at']).slice(0, 16).replace('T', ' ')}:`,
      indent(clean(comment['body'])),
    )
  }
  return parts.join('\n')
}

export function printStatus(body: Row): string {
  const agent = (body['agent'] ?? {}) as Row
  const sync = (body['sync'] ?? {}) as Row
  return [
    `${clean(agent['name'])} (@${clean(agent['slug'])}) on gateway ${clean(body['gateway'])}`,
    `Status: ${words(body['status'])}${body['status_reason'] ? ` (${clean(body['status_reason'])})` : ''}`,
    `Gate: ${body['gate'] ? clean(body['gate_detail']) : 'open'}`,
    `Sync: ${words(sync['connection'])}, ${clean(sync['pending'])} changes on their way`,
  ].join('\n')
}
