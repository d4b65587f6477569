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

/** Why nothing is sent although the server answers, and what to do. */
const PARKED: Readonly<Record<string, string>> = {
  schema_too_old: 'This gateway is too old for the server: update it and start it again.',
  schema_too_new: 'The server is older than this gateway: update the server.',
  revoked: 'This gateway was removed from the workspace: ask an admin, and “hq sync export” saves what waits.',
  forbidden: 'The server takes no changes from this gateway: ask an admin of the workspace.',
  too_large: 'One change is too large for the server; it and those after it wait.',
}

const CONNECTION: Readonly<Record<string, string>> = {
  online: 'connected',
  connecting: 'connecting',
  offline: 'the server cannot be reached; changes are sent when it can be',
  unauthorized: 'the server does not know this gateway any more: register it again; what waits is kept',
}

export function printSync(body: Row): string {
  const pending = Number(body['pending'])
  const rejected = Number(body['rejected'])
  const initial = (body['initial'] ?? {}) as Row
  const parked = body['parked'] === null ? undefined : clean(body['parked'])
  const since = body['oldest_pending_at'] ? `, the oldest since ${ago(body['oldest_pending_at'], body['now'])}` : ''
  return [
    `Gateway ${clean(body['gateway'])}: ${CONNECTION[String(body['connection'])] ?? clean(body['connection'])}`,
    ...(initial['done'] === false
      ? [
          `First load: ${clean(initial['rows'])} rows, ${clean(initial['tables_done'])} of ${clean(initial['tables'])} tables`,
        ]
      : []),
    ...(body['stalled_since']
      ? [
          `The server is there, but can't bring changes; since ${ago(body['stalled_since'], body['now'])}. It is asked again.`,
        ]
      : []),
    pending === 0 ? 'Nothing waits.' : `Waiting: ${pending === 1 ? '1 change' : `${pending} changes`}${since}`,
    ...(rejected > 0 ? [`Refused: ${rejected}; “hq sync outbox” says why`] : []),
    ...(parked ? [`Not sent: ${PARKED[parked] ?? `the server says ${words(parked)}; it is tried again`}`] : []),
    ...(body['last_heard_at'] ? [`Last heard of the server: ${ago(body['last_heard_at'], body['now'])}`] : []),
  ].join('\n')
}

export function printOutbox(body: Row): string {
  const changes = rows(body['changes'])
  if (changes.length === 0) return 'Nothing waits.'
  const lines = changes.flatMap((change) => {
    const rejection = (change['rejection'] ?? undefined) as Row | undefined
    const state = rejection ? 'refused' : change['state'] === 'accepted' ? 'received' : 'waiting'
    const at = clean(change['created_at']).slice(0, 16).replace('T', ' ')
    return [
      `${clean(change['seq']).padStart(6)}  ${state.padEnd(8)}  ${at}  ${clean(change['by'])}: ${clean(change['what'])}`,
      ...(rejection ? [indent(`  ${clean(rejection['message'])} (${clean(rejection['code'])})`)] : []),
    ]
  })
  const left = Number(body['total']) - changes.length
  return [...lines, ...(left > 0 ? [`and ${left} more (--limit)`] : [])].join('\n')
}

/** "12 min ago", by the gateway's clock. */
function ago(at: unknown, now: unknown): string {
  const seconds = Math.max(0, (Date.parse(String(now)) - Date.parse(String(at))) / 1000)
  if (!Number.isFinite(seconds)) return clean(at)
  if (seconds < 60) return 'just now'
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

export function printSessions(body: Row): string {
  const sessions = rows(body['sessions'])
  if (sessions.length === 0) return 'OpenClaw remembers no session of HQ’s runs.'
  return sessions
    .map(
      ({ key, updated_at }) =>
        `${clean(updated_at ?? '')
          .slice(0, 16)
          .replace('T', ' ')
          .padEnd(16)}  ${clean(key)}`,
    )
    .join('\n')
}

export function printTranscript(body: Row): string {
  const messages = rows(body['messages'])
  if (messages.length === 0) return 'This session is empty, or there is none of that key.'
  return messages
    .map(
      ({ role, text, at }) =>
        `${clean(role)}${at ? `, ${clean(at).slice(0, 16).replace('T', ' ')}` : ''}:\n${indent(clean(text))}`,
    )
    .join('\n')
}
