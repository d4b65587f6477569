/**
 * Rules of the domain that a constraint can't state: what a patch may do beyond table, row and column rights.
 * Pure over the loaded rows; a refusal says what to do instead.
 */
import { type Role, roleAtLeast } from '@hq/shared/domain/access.ts'
import { readOauth } from '@hq/shared/domain/oauth-settings.ts'
import { reviewRefusal } from '@hq/shared/domain/review.ts'
import { secretNameProblem } from '@hq/shared/domain/secret-names.ts'
import { slugProblem } from '@hq/shared/domain/slug.ts'
import type { TableName } from '@hq/shared/schema/tables.ts'
import type { Actor, Principal, RejectionCode } from '@hq/shared/sync/protocol.ts'
import type { Values } from './merge.ts'
import type { Store } from './store.ts'

export interface Refusal {
  readonly code: RejectionCode
  readonly message: string
}

export interface RuleInput {
  readonly before: Values | undefined
  /** The whole row as it would be. */
  readonly after: Values
  /** The columns that really change. */
  readonly changed: Values
  readonly principal: Principal
  readonly actor: Actor
  readonly store: Store
}

export const ruleFor = (table: TableName): ((input: RuleInput) => Refusal | undefined) | undefined => RULES[table]

const invalid = (message: string): Refusal => ({ code: 'invalid', message })
const forbidden = (message: string): Refusal => ({ code: 'forbidden', message })
const isAdmin = (principal: Principal): boolean => principal.kind === 'person' && roleAtLeast(principal.role, 'admin')
const touches = (changed: Values, column: string): boolean => Object.hasOwn(changed, column)
const blank = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

const onlyFromServer =
  (what: string) =>
  ({ before }: RuleInput): Refusal | undefined =>
    before ? undefined : forbidden(what)

const RULES: Partial<Record<TableName, (input: RuleInput) => Refusal | undefined>> = {
  workspace: ({ before, changed }) => {
    if (!before) return forbidden('A workspace is made by setting it up.')
    if (changed['deleted_at']) return forbidden('The workspace itself is not deleted here.')
    return touches(changed, 'name') && blank(changed['name']) ? invalid('Please give the workspace a name.') : undefined
  },
  gateways: onlyFromServer(
    'A gateway comes in by registering with a token (Settings, Gateways), not by writing a row.',
  ),
  conflicts: onlyFromServer('Conflicts are recorded by the server.'),
  people: peopleRule,
  agents: agentRule,
  agent_files: ({ before, after, store }) =>
    before || store.agent(String(after['agent_id']))?.gateway_id === after['gateway_id']
      ? undefined
      : forbidden('The agent lives on another gateway by now; what this one still has of it does not count.'),
  agent_commands: commandRule,
  tasks: taskRule,
  task_relations: relationRule,
  comments: commentRule,
  entity_links: linkRule,
  secrets: secretRule,
  sealed_secrets: sealedRule,
  model_connections: connectionRule,
  approvals: approvalRule,
}

function peopleRule({ before, after, changed, principal, store }: RuleInput): Refusal | undefined {
  if (!before) return forbidden('People join by an invitation (Settings, People).')
  if (principal.kind !== 'person') return forbidden('Only people can change people.')
  const was = before['role'] as Role
  const self = before['id'] === principal.person_id
  if (!self && !roleAtLeast(principal.role, was))
    return forbidden(`You are ${principal.role} and can't change ${was === 'owner' ? 'an owner' : was}.`)
  if (touches(changed, 'name') && blank(changed['name'])) return invalid('Please give a name.')
  const loses = touches(changed, 'role') || changed['deleted_at']
  if (touches(changed, 'role') && !roleAtLeast(principal.role, changed['role'] as Role)) {
    return forbidden(`You are ${principal.role} and can't make somebody ${String(changed['role'])}.`)
  }
  if (loses && was === 'owner' && (after['role'] !== 'owner' || after['deleted_at'])) {
    const others = [...store.all('people')].some(
      (person) => person['id'] !== before['id'] && person['role'] === 'owner' && !person['deleted_at'],
    )
    if (!others) return forbidden('This is the only owner. Make somebody else an owner first.')
  }
  return undefined
}

function agentRule({ before, after, changed, principal, store }: RuleInput): Refusal | undefined {
  if (touches(changed, 'name') && blank(changed['name'])) return invalid('Please give the agent a name.')
  if (!before) {
    const problem = slugProblem(String(after['slug'] ?? ''))
    if (problem) return invalid(problem)
    if (principal.kind === 'gateway') return forbidden('Agents are made by people.')
  } else if (principal.kind === 'gateway' && touches(changed, 'tool_policy')) {
    return forbidden('What an agent may use is set by people.')
  }
  // A new agent's row has all its columns: without a word about tools it is like any other.
  const policy = before ? touches(changed, 'tool_policy') : !isEmpty(changed['tool_policy'])
  if (policy && !isAdmin(principal)) return forbidden('What an agent may use without asking is set by admins.')
  if (before && touches(changed, 'gateway_id')) {
    const to = store.get('gateways', String(changed['gateway_id']))
    if (!to || to['deleted_at']) return invalid('That gateway was retired or is none. Choose another one.')
    // The usual way is a `move`, which takes the files along.
    if (principal.kind === 'person' && !isAdmin(principal))
      return forbidden('Moving an agent without its files is for admins.')
  }
  if (touches(changed, 'reports_to_id') && changed['reports_to_id']) {
    const seen = new Set([String(after['id'])])
    for (let at: unknown = changed['reports_to_id']; at; at = store.get('agents', String(at))?.['reports_to_id']) {
      if (seen.has(String(at))) return invalid('That would make an agent report to itself, directly or through others.')
      seen.add(String(at))
    }
  }
  return undefined
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)

/** Commands that reach beyond the agents' folders. */
const ON_THE_MACHINE: ReadonlySet<string> = new Set(['run_shell', 'install_runtime', 'container_action', 'restore'])

/** Names under which other products put keys into commands. */
const holdsKey = (payload: unknown): boolean =>
  typeof payload === 'object' &&
  payload !== null &&
  Object.keys(payload).some((name) => /key|token|secret|password|value/i.test(name))

/** What a sign-in ended with is as secret as a key: a command names the row that it was sealed in, and nothing else. */
const holdsMore = (payload: unknown): boolean =>
  Object.keys(payload ?? {}).some((name) => name !== 'connection_id' && name !== 'sealed_id')

/** As those who may write `model_connections` themselves: the gateway does it for them. */
const OF_CONNECTIONS: ReadonlySet<string> = new Set([
  'auth_remove',
  'auth_set_default',
  'auth_start',
  'auth_paste',
  'auth_refresh',
])

function commandRule({ before, after, changed, principal, actor, store }: RuleInput): Refusal | undefined {
  if (before) return undefined
  if (principal.kind === 'person') {
    const by = after['requested_by']
    if (by && by !== principal.person_id) return forbidden('A command is requested in your own name.')
    if (after['requested_by_agent_id']) return forbidden('Only a gateway requests commands for an agent.')
    if (ON_THE_MACHINE.has(String(changed['action'])) && !isAdmin(principal))
      return forbidden('What changes the gateway’s machine takes the role admin.')
    if (OF_CONNECTIONS.has(String(changed['action'])) && !isAdmin(principal))
      return forbidden('Model connections are changed by owners and admins.')
  } else if (after['action'] === 'approve_pairing') {
    return forbidden('Approvals are answered by people.')
  } else if (actor.type === 'agent' && after['requested_by_agent_id'] && after['requested_by_agent_id'] !== actor.id) {
    return forbidden('A command is requested in the name of the agent that asks.')
  }
  if (String(after['action']).startsWith('auth_') && holdsKey(after['payload']))
    return invalid(
      'A key is never part of a command, which everybody here can read. Set it under Models, where it is encrypted for the gateway.',
    )
  if (after['action'] === 'auth_paste' && holdsMore(after['payload']))
    return invalid(
      'What was pasted is a secret and never part of a command, which everybody here can read. Paste it under Models, where it is encrypted for the gateway.',
    )
  const agent = after['agent_id'] ? store.get('agents', String(after['agent_id'])) : undefined
  const moving = after['action'] === 'move' || after['action'] === 'remove'
  if (agent && agent['gateway_id'] !== after['gateway_id'] && !moving) {
    return invalid(`${String(agent['name'])} belongs to another gateway than the one this command is addressed to.`)
  }
  return undefined
}

function taskRule({ before, after, changed, principal, store }: RuleInput): Refusal | undefined {
  if (touches(changed, 'title') && blank(changed['title'])) return invalid('Please give the task a title.')
  if (after['assignee_agent_id'] && after['assignee_person_id'])
    return invalid('A task is assigned to one: an agent or a person.')
  if (
    !before &&
    principal.kind === 'person' &&
    after['created_by_id'] &&
    after['created_by_id'] !== principal.person_id
  ) {
    return forbidden('A task is created in your own name.')
  }
  if (touches(changed, 'parent_id') && changed['parent_id']) {
    const parent = store.get('tasks', String(changed['parent_id']))
    if (changed['parent_id'] === after['id']) return invalid('A task cannot be its own subtask.')
    if (parent?.['parent_id']) return invalid('Subtasks are one level deep: that task is a subtask itself.')
    for (const task of store.all('tasks')) {
      if (task['parent_id'] === after['id'] && !task['deleted_at'])
        return invalid('Subtasks are one level deep: this task has subtasks of its own.')
    }
  }
  return undefined
}

function relationRule({ after, changed, store }: RuleInput): Refusal | undefined {
  const source = String(after['source_task_id'])
  const target = String(after['target_task_id'])
  if (source === target) return invalid('A task cannot be related to itself.')
  if (after['relation_type'] !== 'blocks' || after['deleted_at']) return undefined
  if (!touches(changed, 'relation_type') && !touches(changed, 'deleted_at')) return undefined
  const seen = new Set<string>()
  const stack = [target]
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (at === source) return invalid('That would make the tasks wait for each other in a circle.')
    if (seen.has(at)) continue
    seen.add(at)
    stack.push(...store.blockedBy(at))
  }
  return undefined
}

function commentRule({ before, after, changed, principal, actor }: RuleInput): Refusal | undefined {
  if (touches(changed, 'body') && blank(changed['body'])) return invalid('A comment needs some text.')
  if (!before) {
    const expected =
      actor.type === 'human'
        ? after['actor_person_id'] === actor.id
        : actor.type === 'system' || after['actor_agent_id'] === actor.id
    return after['actor_type'] === actor.type && expected
      ? undefined
      : forbidden('A comment is written in its author’s own name.')
  }
  const own =
    principal.kind === 'person'
      ? before['actor_person_id'] === principal.person_id
      : before['actor_type'] !== 'human' && before['actor_agent_id'] === actor.id
  return own || isAdmin(principal) ? undefined : forbidden('Only its author or an admin can change a comment.')
}

function linkRule({ before, after, changed, principal, actor }: RuleInput): Refusal | undefined {
  const byPerson = principal.kind === 'person'
  if (!before) {
    if (after['is_deliverable'] === true) {
      const refused = reviewRefusal(undefined, after['review_status'] ?? null, byPerson)
      if (refused) return invalid(refused)
    }
    const person = after['submitted_by_person_id']
    if (person && (!byPerson || person !== principal.person_id))
      return forbidden('A deliverable is submitted in your own name.')
    const agent = after['submitted_by_agent_id']
    if (agent && (byPerson || (actor.type === 'agent' && agent !== actor.id)))
      return forbidden('A deliverable is submitted by the agent that made it.')
    return undefined
  }
  if (touches(changed, 'review_status')) {
    const refused = reviewRefusal(before['review_status'] ?? null, changed['review_status'], byPerson)
    if (refused) return byPerson ? invalid(refused) : forbidden(refused)
  }
  if (
    touches(changed, 'reviewed_by') &&
    changed['reviewed_by'] &&
    (!byPerson || changed['reviewed_by'] !== principal.person_id)
  ) {
    return forbidden('A verdict is given in your own name.')
  }
  return undefined
}

function secretRule({ before, after, changed, principal, store }: RuleInput): Refusal | undefined {
  if (touches(changed, 'name') && blank(changed['name'])) return invalid('Please give the secret a name.')
  if (touches(changed, 'version') && before && Number(changed['version']) !== Number(before['version']) + 1)
    return invalid('A new value raises the version of a secret by one.')
  // The gateway removes a model connection for whoever asked it to (`auth_remove`), and its key with it.
  const deletes = touches(changed, 'deleted_at') && (before?.['category'] !== 'model' || changed['deleted_at'] === null)
  if (before && principal.kind === 'gateway' && (touches(changed, 'version') || deletes))
    return forbidden('People set and revoke secrets; a gateway reports how they stand.')
  if (before) return undefined
  if (principal.kind === 'gateway') return forbidden('Secrets are set by people.')
  const problem = secretNameProblem(String(after['key'] ?? ''))
  if (problem) return invalid(problem)
  if (after['created_by'] && after['created_by'] !== principal.person_id)
    return forbidden('A secret is set in your own name.')
  const agent = after['agent_id'] ? store.get('agents', String(after['agent_id'])) : undefined
  return agent && agent['gateway_id'] !== after['gateway_id']
    ? invalid(`${String(agent['name'])} belongs to another gateway than the one this secret was sealed for.`)
    : undefined
}

/** Written once by a person, emptied by the gateway; what isn't sealed is never stored. */
function sealedRule({ before, after, principal }: RuleInput): Refusal | undefined {
  if (!before) {
    if (principal.kind === 'gateway') return forbidden('Values are sealed by people.')
    return /^hq\.v1\.[\w-]{100,60000}$/.test(String(after['sealed'] ?? ''))
      ? undefined
      : invalid('That value is not sealed, so it was not stored. Reload the app and set the secret again.')
  }
  if (principal.kind === 'person') return forbidden('A sealed value is replaced by a new version, never changed.')
  return after['sealed'] === '' ? undefined : forbidden('A gateway only empties sealed values.')
}

function connectionRule({ before, after, changed, principal }: RuleInput): Refusal | undefined {
  if (!before && principal.kind === 'gateway') return forbidden('Model connections are made by people.')
  if (touches(changed, 'label') && blank(changed['label'])) return invalid('Please give the connection a name.')
  if (touches(changed, 'oauth') && after['oauth'] !== null) {
    if (principal.kind === 'gateway') return forbidden('How people sign in is set by people.')
    const read = readOauth(after['oauth'])
    if (!read.ok) return invalid(read.message)
  }
  if (!touches(changed, 'base_url') || after['base_url'] === null) return undefined
  const url = URL.parse(String(after['base_url']))
  if (!url || !/^https?:$/.test(url.protocol))
    return invalid('The address of a model provider begins with https:// or http://.')
  return url.username || url.password || url.search
    ? invalid(
        'An address is seen by everybody here. Take name, password and everything behind “?” out of it; a key has a field of its own.',
      )
    : undefined
}

/** A person's command `approve_pairing` whose end is in the same push: the gateway answers in their name, and just as they said. */
function isAskedFor(before: Values, after: Values, store: Store): boolean {
  if (before['kind'] !== 'pairing' || before['status'] !== 'pending') return false
  for (const command of store.all('agent_commands')) {
    const { approval_id, request_id, decision } = (command['payload'] ?? {}) as Record<string, unknown>
    const detail = (before['detail'] ?? {}) as Record<string, unknown>
    if (
      command['action'] === 'approve_pairing' &&
      command['gateway_id'] === before['gateway_id'] &&
      command['requested_by'] &&
      command['requested_by'] === after['decided_by'] &&
      (approval_id === before['id'] || (request_id !== undefined && request_id === detail['request'])) &&
      after['status'] === (decision === 'allow' ? 'allowed' : 'denied')
    )
      return true
  }
  return false
}

/** Asked by a gateway, answered by a person, once; a gateway can only withdraw what it asked. */
function approvalRule({ before, after, changed, principal, store }: RuleInput): Refusal | undefined {
  if (!before) {
    if (principal.kind === 'person') return forbidden('Approvals are asked for by gateways.')
    const open = after['status'] === 'pending' && isEmpty(after['decided_by']) && isEmpty(after['decided_at'])
    return open ? undefined : forbidden('An approval begins as a question.')
  }
  const answer = ['decided_by', 'decided_at', 'note'].some((column) => touches(changed, column))
  if (principal.kind === 'gateway') {
    if (answer && isAskedFor(before, after, store)) return undefined
    if (answer) return forbidden('Approvals are answered by people.')
    if (!touches(changed, 'status')) return undefined
    return before['status'] === 'pending' && ['expired', 'cancelled'].includes(String(after['status']))
      ? undefined
      : forbidden('A gateway can only withdraw what it asked.')
  }
  if (touches(changed, 'deleted_at')) return forbidden('Approvals stay, so that it can be seen who allowed what.')
  if (!touches(changed, 'status') && !answer) return undefined
  if (before['status'] !== 'pending') return invalid('This was answered already.')
  if (!['allowed', 'denied'].includes(String(after['status']))) return invalid('The answer is to allow or to deny.')
  return after['decided_by'] === principal.person_id
    ? undefined
    : forbidden('An approval is answered in your own name.')
}
