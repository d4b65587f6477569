/** Everything said and done about one thing, as one timeline: comments and activity, oldest first, the newest part first loaded. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Trash2 } from 'lucide-react'
import { useCallback, useMemo, useState } from 'react'
import { newId, useRows, useWrite } from '../../replica/hooks.ts'
import type { Actor } from '../../ui/avatar.tsx'
import { Button } from '../../ui/button.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Timeline, type TimelineEvent } from '../../ui/timeline.tsx'
import { toast } from '../../ui/toast.tsx'
import { pushUndo } from '../../ui/undo.ts'
import { RowMarkView } from '../sync/row-mark.tsx'
import { useRowMarks } from '../sync/row-marks.ts'
import { type AuditRow, joined, type Names, sentence } from './activity.ts'
import { Composer } from './composer.tsx'
import { Markdown } from './markdown.tsx'
import type { Mentionable } from './mentions.ts'

type Comment = Pick<
  Row<'comments'>,
  'id' | 'body' | 'created_at' | 'actor_type' | 'actor_person_id' | 'actor_agent_id' | 'run_id'
>

export interface ConversationProps {
  readonly entityType: Row<'comments'>['entity_type']
  readonly entityId: string
  readonly tenantId: string
  readonly me: string
  readonly canWrite: boolean
  readonly mentionable: readonly Mentionable[]
  readonly actor: (type: 'human' | 'agent', id: string) => Actor | undefined
  readonly names: Names
  /** Who hears of a comment without a mention. */
  readonly hint?: string | undefined
}

const PAGE = 60
const COMMENTS = `select id, body, created_at, actor_type, actor_person_id, actor_agent_id, run_id from comments
  where entity_id = $1::uuid and deleted_at is null order by created_at desc, id desc limit $2::int`
const AUDIT = `select id, actor_type, actor_id, entity_type, entity_id, action, summary, changes, occurred_at from audit_log
  where (entity_id = $1::uuid or entity_id in (select id from entity_links where owner_id = $1::uuid and is_deliverable))
  order by occurred_at desc, id desc limit $2::int`

export function Conversation(props: ConversationProps) {
  const { entityType, entityId, tenantId, me, canWrite, mentionable, actor, names, hint } = props
  const write = useWrite()
  const [limit, setLimit] = useState(PAGE)
  const comments = useRows<Comment>(COMMENTS, [entityId, limit + 1], { tables: ['comments'] })
  const audit = useRows<AuditRow>(AUDIT, [entityId, limit + 1], { tables: ['audit_log', 'entity_links'] })
  const marks = useRowMarks('comments', comments.rows)
  const more = comments.rows.length > limit || audit.rows.length > limit

  const remove = useCallback(
    async (id: string) => {
      await write([{ sql: 'update comments set deleted_at = now() where id = $1::uuid', params: [id] }])
      const restore = async () => {
        await write([{ sql: 'update comments set deleted_at = null where id = $1::uuid', params: [id] }])
      }
      pushUndo({ label: 'deleted a comment', undo: restore })
    },
    [write],
  )
  const events = useMemo(() => {
    const list: (TimelineEvent & { readonly time: number })[] = []
    for (const comment of comments.rows.slice(0, limit)) {
      const who = comment.actor_agent_id
        ? actor('agent', comment.actor_agent_id)
        : comment.actor_person_id
          ? actor('human', comment.actor_person_id)
          : undefined
      list.push({
        id: comment.id,
        time: Date.parse(comment.created_at),
        at: comment.created_at,
        actor: who,
        text: (
          <span className="inline-flex items-center gap-1">
            <RowMarkView mark={marks.get(comment.id)} />
          </span>
        ),
        body: (
          <div className="group/comment relative rounded-card border border-line px-3 py-2">
            <Markdown text={comment.body} mentionable={mentionable} />
            {canWrite && comment.actor_person_id === me && (
              <IconButton
                size="sm"
                label="Delete this comment"
                icon={Trash2}
                onClick={() =>
                  void remove(comment.id).catch((error: unknown) =>
                    toast({ title: 'That was not deleted', description: String(error), meaning: 'danger' }),
                  )
                }
                className="absolute top-1 right-1 opacity-0 group-hover/comment:opacity-100 focus-visible:opacity-100 touch:opacity-100"
              />
            )}
          </div>
        ),
      })
    }
    for (const row of joined(audit.rows.slice(0, limit).toReversed())) {
      const text = sentence(row, names)
      if (!text) continue
      const who = row.actor_id === null || row.actor_type === 'system' ? undefined : actor(row.actor_type, row.actor_id)
      list.push({
        id: row.id,
        time: Date.parse(row.occurred_at),
        at: row.occurred_at,
        actor: who,
        text: who ? text : `HQ ${text}`,
      })
    }
    return list.sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1))
  }, [comments.rows, audit.rows, marks, limit, actor, names, mentionable, canWrite, me, remove])

  const send = async (body: string, mentions: string[]) => {
    const id = newId()
    await write([
      {
        sql: `insert into comments (id, tenant_id, entity_type, entity_id, body, actor_type, actor_person_id, mentions)
          values ($1::uuid, $2::uuid, $3::text, $4::uuid, $5::text, 'human', $6::uuid, $7::text[])`,
        params: [id, tenantId, entityType, entityId, body, me, mentions],
      },
    ])
  }

  return (
    <section aria-labelledby="conversation" className="min-w-0">
      <h2 id="conversation" className="section-title pb-3">
        Conversation
      </h2>
      {more && (
        <Button variant="ghost" size="sm" onClick={() => setLimit(limit + PAGE * 2)} className="mb-2">
          Show earlier
        </Button>
      )}
      <Timeline label="Conversation and activity" events={events} />
      {canWrite && (
        <div className="pt-4">
          <Composer
            name={`comment.${entityId}`}
            mentionable={mentionable}
            onSend={send}
            placeholder="Comment; @ mentions an agent or a person"
            hint={hint}
          />
        </div>
      )}
    </section>
  )
}
