/**
 * `hq`: an agent's own steps from a shell. It asks the gateway's local API and prints what comes back.
 *
 * Exit codes: 0 done · 1 refused · 2 wrong usage · 3 the gateway cannot be reached.
 */
import { readFile } from 'node:fs/promises'
import { isAbsolute, relative, resolve } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { audit } from './audit.ts'
import { runBackup, runRestore, runWorkspace } from './backup.ts'
import { type Answer, type Connection, call, findConnection, Unreachable } from './connection.ts'
import { examine } from './doctor.ts'
import { printFindings, worst } from './findings.ts'
import { printSessions, printStatus, printTask, printTasks, printTranscript } from './print.ts'
import {
  printOutbox,
  printSync,
  SYNC_HELP,
  SyncUsage,
  syncDiscard,
  syncExport,
  syncOutbox,
  syncRetry,
  syncStatus,
} from './sync-commands.ts'

const HELP = `hq: work on your tasks in HQ

  hq my-tasks                                   your open tasks
  hq task show <id>                             one task with comments and deliverables
  hq task claim <id>                            say that you have begun
  hq task complete <id> [--summary TEXT]        complete a task that needs no review
  hq tasks search WORDS… [--status S] [--mine] [--limit N]
  hq comment <task> --body TEXT                 comment on a task (--body - reads standard input)
  hq submit-deliverable <task> --label NAME (--text TEXT | --file PATH | --url ADDRESS)
                                                put a result up for review (--text - reads standard input)
  hq status                                     who you are and what holds you back
  hq sync status | outbox | retry | discard | export
                                                what waits to be sent; “hq sync --help” says more
  hq openclaw sessions [AGENT]                  what OpenClaw remembers, for whoever runs this gateway
  hq openclaw transcript <session>              one session, message by message
  hq doctor                                     looks at this machine's gateway: what does not work, and what to do
  hq audit                                      risky settings of this machine's HQ, the worst first
  hq backup key                                 the recovery key of this machine's gateway
  hq backup FILE, hq restore FILE               the whole workspace into one encrypted file, and back into an empty install
                                                (on the server's machine)
  hq gateway restore [FILE]                     makes this machine the gateway that a backup is of

  --json    print the gateway's answer as JSON
  --help    this text

Submitting a deliverable does not complete the task: it completes when a person approves.
Exit codes: 0 done, 1 refused (doctor, audit: a problem was found), 2 wrong usage, 3 the gateway cannot be reached.`

class Usage extends Error {}

const OPTIONS = {
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  body: { type: 'string' },
  label: { type: 'string' },
  text: { type: 'string' },
  file: { type: 'string' },
  url: { type: 'string' },
  summary: { type: 'string' },
  status: { type: 'string' },
  mine: { type: 'boolean' },
  limit: { type: 'string' },
  set: { type: 'string', multiple: true },
  yes: { type: 'boolean' },
} as const

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>>['values']

interface Command {
  readonly options: readonly (keyof typeof OPTIONS)[]
  run(args: readonly string[], values: Values, connection: Connection): Promise<Answer>
  print(body: Record<string, unknown>): string
}

const COMMANDS: Readonly<Record<string, Command>> = {
  'my-tasks': {
    options: [],
    run(args, _, connection) {
      none(args)
      return call(connection, 'GET', '/v1/my-tasks')
    },
    print: (body) => printTasks(body['tasks'], 'You have no open tasks.'),
  },
  'task show': {
    options: [],
    run: (args, _, connection) => call(connection, 'GET', `/v1/tasks/${taskId(args)}`),
    print: printTask,
  },
  'task claim': {
    options: [],
    run: (args, _, connection) => call(connection, 'POST', `/v1/tasks/${taskId(args)}/claim`, {}),
    print: () => 'Claimed: the task is in progress.',
  },
  'task complete': {
    options: ['summary'],
    run: (args, { summary }, connection) =>
      call(connection, 'POST', `/v1/tasks/${taskId(args)}/complete`, summary === undefined ? {} : { summary }),
    print: () => 'The task is done.',
  },
  'tasks search': {
    options: ['status', 'mine', 'limit'],
    run: (args, { status, mine, limit }, connection) => {
      const query = new URLSearchParams({
        q: args.join(' '),
        ...(status ? { status } : {}),
        ...(mine ? { mine: 'true' } : {}),
        ...(limit ? { limit } : {}),
      })
      return call(connection, 'GET', `/v1/tasks/search?${query}`)
    },
    print: (body) => printTasks(body['tasks'], 'No task was found.'),
  },
  comment: {
    options: ['body'],
    async run(args, { body }, connection) {
      const id = taskId(args)
      return call(connection, 'POST', `/v1/tasks/${id}/comments`, { body: await given(body, '--body') })
    },
    print: () => 'Commented.',
  },
  'submit-deliverable': {
    options: ['label', 'text', 'file', 'url'],
    async run(args, { label, text, file, url }, connection) {
      const id = taskId(args)
      if (label === undefined) throw new Usage('--label is needed: a short name of the result.')
      if ([text, file, url].filter((value) => value !== undefined).length !== 1)
        throw new Usage('Give exactly one of --text, --file and --url.')
      const content =
        text !== undefined
          ? { text: await given(text, '--text') }
          : file !== undefined
            ? { file: await fileFrom(file) }
            : { url }
      return call(connection, 'POST', `/v1/tasks/${id}/deliverables`, { label, ...content })
    },
    print: (body) =>
      body['already'] === true
        ? 'This very version already waits for review.'
        : `Submitted for review (round ${body['round']}). The task completes when it is approved.`,
  },
  status: {
    options: [],
    run(args, _, connection) {
      none(args)
      return call(connection, 'GET', '/v1/status')
    },
    print: printStatus,
  },
  'openclaw sessions': {
    options: [],
    run: ([agent, ...more], _, connection) => {
      none(more)
      const query = agent === undefined ? '' : `?${new URLSearchParams({ agent })}`
      return call(connection, 'GET', `/v1/openclaw/sessions${query}`)
    },
    print: printSessions,
  },
  'openclaw transcript': {
    options: [],
    run: ([session = '', ...more], _, connection) => {
      none(more)
      return call(connection, 'GET', `/v1/openclaw/transcript?${new URLSearchParams({ session })}`)
    },
    print: printTranscript,
  },
  'sync status': {
    options: [],
    run(args, _, connection) {
      none(args)
      return syncStatus(connection)
    },
    print: printSync,
  },
  'sync outbox': {
    options: ['limit'],
    run(args, values, connection) {
      none(args)
      return syncOutbox(connection, values)
    },
    print: printOutbox,
  },
  'sync retry': {
    options: ['set'],
    run: (args, values, connection) => syncRetry(connection, args, values),
    print: () => 'It is sent again, as a new change at the end of the queue.',
  },
  'sync discard': {
    options: ['yes'],
    run: (args, values, connection) => syncDiscard(connection, args, values),
    print: (body) => `Change ${body['seq']} was discarded.`,
  },
  'sync export': {
    options: [],
    run: (args, _, connection) => syncExport(connection, args),
    print: (body) => `${body['changes'] === 1 ? '1 change' : `${body['changes']} changes`} in ${body['file']}.`,
  },
}

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parse(argv)
  if (positionals[0] === 'sync' && (values.help || positionals.length === 1)) {
    console.log(SYNC_HELP)
    return values.help ? 0 : 2
  }
  if (values.help || positionals.length === 0) {
    console.log(HELP)
    return values.help ? 0 : 2
  }
  const [first, second] = positionals
  if ((first === 'backup' && second !== 'key') || first === 'restore')
    return runWorkspace(first, positionals.slice(1), process.env)
  if (first === 'backup') return runBackup(positionals.slice(1), process.env)
  if (positionals[0] === 'gateway' && positionals[1] === 'restore') return runRestore(positionals.slice(2), process.env)
  const look = positionals[0] === 'doctor' ? examine : positionals[0] === 'audit' ? audit : undefined
  if (look) {
    const foreignHere = Object.keys(values).find((option) => option !== 'json')
    if (foreignHere) throw new Usage(`“hq ${positionals[0]}” has no option --${foreignHere}.`)
    none(positionals.slice(1))
    const findings = await look(process.env, process.cwd())
    console.log(values.json ? JSON.stringify({ findings }, null, 2) : printFindings(findings))
    return worst(findings) === 'problem' ? 1 : 0
  }
  const name = [2, 1]
    .map((count) => positionals.slice(0, count).join(' '))
    .find((each) => Object.hasOwn(COMMANDS, each))
  const command = name === undefined ? undefined : COMMANDS[name]
  if (!name || !command) throw new Usage(`There is no command “${positionals.slice(0, 2).join(' ')}”.`)
  const foreign = Object.keys(values).find(
    (option) => option !== 'json' && !command.options.includes(option as keyof typeof OPTIONS),
  )
  if (foreign) throw new Usage(`“hq ${name}” has no option --${foreign}.`)
  const args = positionals.slice(name.split(' ').length)
  const connection = await findConnection(process.env, process.cwd(), /^(?:sync|openclaw) /.test(name))
  const { status, body } = await command.run(args, values, connection)
  if (status === 401)
    throw new Unreachable('The gateway does not know this token any more; it was restarted, or the agent was removed.')
  if (status >= 400) {
    if (values.json) console.log(JSON.stringify(body, null, 2))
    else console.error(`hq: ${body['message'] ?? `refused with status ${status}`}`)
    return 1
  }
  console.log(values.json ? JSON.stringify(body, null, 2) : command.print(body))
  return 0
}

function parse(argv: readonly string[]): { values: Values; positionals: string[] } {
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true as const })
    return { values, positionals }
  } catch (error) {
    throw new Usage(error instanceof Error ? error.message : String(error))
  }
}

function taskId(args: readonly string[]): string {
  const [id, ...more] = args
  if (id === undefined) throw new Usage('The id of a task is needed.')
  none(more)
  if (!/^[0-9a-f-]{36}$/i.test(id)) throw new Usage(`“${id}” is not the id of a task; “hq my-tasks” shows them.`)
  return id
}

function none(args: readonly string[]): void {
  if (args.length > 0) throw new Usage(`“${args[0]}” is too much here. Text with spaces needs quotation marks.`)
}

/** An option's text; `-` means standard input. */
async function given(value: string | undefined, option: string): Promise<string> {
  if (value === undefined) throw new Usage(`${option} is needed.`)
  if (value !== '-') return value
  return readAll(process.stdin)
}

/** The path as the workspace names it, for a path given from the folder that hq is called in. */
async function fileFrom(path: string): Promise<string> {
  const root = await workspaceRoot(process.cwd())
  if (root === undefined) return path
  const below = relative(root, resolve(path))
  return below.startsWith('..') || isAbsolute(below) ? path : below.replaceAll('\\', '/')
}

async function workspaceRoot(folder: string): Promise<string | undefined> {
  try {
    await readFile(resolve(folder, '.hq-agent.json'))
    return folder
  } catch {
    const above = resolve(folder, '..') // it is not here; look one folder up
    return above === folder ? undefined : workspaceRoot(above)
  }
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof Usage || error instanceof SyncUsage) {
    console.error(`hq: ${error.message}\nTry: hq --help`)
    process.exitCode = 2
  } else if (error instanceof Unreachable) {
    console.error(`hq: ${error.message}`)
    process.exitCode = 3
  } else throw error
}
