/** What the demo model writes: short, believable, made from the task's own words and the agent's role, and always labelled. Pure. */
import type { CommentView, DeliverableView, TaskView } from '../../local-api/task-view.ts'
import type { RunInput } from '../runtime.ts'

type Agent = RunInput['agent']

export interface Draft {
  readonly kind: string
  readonly label: string
  readonly text: string
}

interface Form {
  readonly match: RegExp
  readonly kind: string
  readonly suffix: string
  readonly sections: (topic: string) => readonly (readonly [string, readonly string[]])[]
}

/** By what the agent is for; the last one fits everybody. */
const FORMS: readonly Form[] = [
  {
    match: /\b(writ|ghost|copy|newsletter|script|content|editor)/i,
    kind: 'outline',
    suffix: 'outline',
    sections: (topic) => [
      ['Working title', [topic]],
      [
        'Outline',
        [
          'Opening: why this matters to the reader now',
          `The one idea: ${topic}`,
          'Three proofs or examples, strongest first',
          'What the reader should do next',
        ],
      ],
      ['Tone', ['Plain words, short sentences, one thought per paragraph']],
    ],
  },
  {
    match: /\b(research|scout)/i,
    kind: 'research brief',
    suffix: 'research brief',
    sections: (topic) => [
      ['Question', [`What must be true about “${topic}” for us to act on it?`]],
      [
        'Where to look',
        [
          'What we already have: earlier tasks and notes in the workspace',
          'Primary sources before summaries of them',
          'Two people who have done it before',
        ],
      ],
      [
        'How to decide',
        [
          'List the claims, mark each as checked, likely or open',
          'Stop when the open ones no longer change the decision',
        ],
      ],
    ],
  },
  {
    match: /\b(analy|metric|data)/i,
    kind: 'analysis plan',
    suffix: 'analysis plan',
    sections: (topic) => [
      ['Decision this serves', [topic]],
      [
        'Measures',
        ['One number that says whether it works', 'Two that would show a side effect', 'The value each has today'],
      ],
      ['Reading', ['Compare with the same period before', 'Name what the numbers cannot show']],
    ],
  },
  {
    match: /\b(operat|chief|staff|coordinat|manager)/i,
    kind: 'action plan',
    suffix: 'action plan',
    sections: (topic) => [
      ['Goal', [topic]],
      [
        'Steps',
        [
          'Agree on what “done” means',
          'Name an owner and a date for each part',
          'Do the part that others wait for first',
          'Look at it again half-way',
        ],
      ],
      ['Risks', ['Someone we depend on is away', 'The scope grows while we work']],
    ],
  },
  {
    match: /./,
    kind: 'brief',
    suffix: 'brief',
    sections: (topic) => [
      ['Goal', [topic]],
      ['Approach', ['Collect what is there', 'Make a first version early', 'Show it, then improve it']],
    ],
  },
]

export function draftFor(agent: Agent, task: TaskView): Draft {
  const role = `${agent.slug} ${agent.name} ${agent.description ?? ''}`
  const form = FORMS.find(({ match }) => match.test(role)) ?? FORMS.at(-1)
  if (!form) throw new Error('no form for a draft')
  const points = pointsOf(task)
  const sections = form
    .sections(task.title)
    .map(([head, lines]) => `## ${head}\n${lines.map((line) => `- ${line}`).join('\n')}`)
  const checklist = (points.length > 0 ? points : ['Confirm the goal with whoever asked', 'Draft it', 'Review it']).map(
    (point) => `- [ ] ${point}`,
  )
  const facts = [
    task.due_date ? `Due ${task.due_date.slice(0, 10)}.` : '',
    task.stream ? `Stream: ${task.stream}.` : '',
    `Priority: ${task.priority}.`,
  ]
  return {
    kind: form.kind,
    label: `${shorten(task.title, 80)}: ${form.suffix}`,
    text: [
      `# ${task.title}`,
      notice(agent),
      `## What was asked\n${quote(task.description?.trim() || task.title)}\n\n${facts.filter(Boolean).join(' ')}`,
      ...sections,
      `## Checklist\n${checklist.join('\n')}`,
      '## Open questions\n- Who reads this first, and what do they decide with it?\n- What must it not become?',
    ].join('\n\n'),
  }
}

/** The earlier text with an account of the changes at its head. */
export function revisionOf(agent: Agent, task: TaskView, previous: DeliverableView): string {
  const note = previous.review_note?.trim() || 'Please revise this.'
  const body = previous.body ?? draftFor(agent, task).text
  const rest = body
    .replace(/^# .*\n+/, '')
    .replace(/^> Written by the demo model[^\n]*\n+/, '')
    .replace(/^## Changes in version \d+[\s\S]*?\n(?=## )/, '')
  return [
    `# ${task.title}`,
    notice(agent),
    `## Changes in version ${previous.review_round + 1}\nThe reviewer wrote:\n${quote(note)}\n\n${pointsFrom(note)
      .map((point) => `- Taken up: ${point}`)
      .join('\n')}`,
    rest,
  ].join('\n\n')
}

export function replyFor(agent: Agent, task: TaskView, asked: CommentView | undefined): string {
  const state = task.deliverables.findLast((link) => link.mine)
  const where =
    state?.review_status === 'submitted'
      ? `“${state.label}” is up for review.`
      : state?.review_status === 'approved'
        ? `“${state.label}” is approved.`
        : `The task is ${task.status.replaceAll('_', ' ')}.`
  const question = asked ? `${quote(shorten(asked.body, 400))}\n\n` : ''
  return `${question}Thank you, I have read this. ${where} I am ${agent.name}, running on the demo model, so I can only acknowledge it; with a real model I would answer the question itself.`
}

const notice = (agent: Agent): string =>
  `> Written by the demo model for ${agent.name}. No real model was asked: connect one to get real work.`

/** What the description asks for: its list items, else its sentences. */
function pointsOf(task: TaskView): string[] {
  return [...task.subtasks.map((subtask) => subtask.title), ...pointsFrom(task.description ?? '')].slice(0, 8)
}

function pointsFrom(text: string): string[] {
  const items = [...text.matchAll(/^\s*(?:[-*•]|\d+[.)])\s+(.+)$/gm)].map((match) => (match[1] ?? '').trim())
  const found = items.length > 0 ? items : text.split(/(?<=[.!?])\s+|\n+/)
  return found
    .map((point) => shorten(point.replace(/^\[[ x]\]\s*/i, '').trim(), 160))
    .filter((point) => point.length > 3)
    .slice(0, 8)
}

const quote = (text: string): string =>
  shorten(text, 1_500)
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n')

const shorten = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1).trimEnd()}…`
