/**
 * The SQL equals the model: migrations/0002_replica.sql, attach.ts, apply.ts and the statements of pusher, settler and outbox, driven by the same events
 * as `core/overlay.ts`, hold the same after every one of them.
 *
 * Events are drawn by fast-check and shrink; `SEED=…` runs one seed again. What they found stands below them as tests with names.
 */
import type { PGlite } from '@electric-sql/pglite'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { c, type TableSpec, table } from '../schema/columns.ts'
import { type DifferenceRule, isDifferenceRule } from '../schema/differences.ts'
import { createTable, quote } from '../schema/sql.ts'
import { type TableName, tables } from '../schema/tables.ts'
import { type Applier, createApplier } from './apply.ts'
import { attachTable } from './attach.ts'
import {
  type DifferencesOf,
  newOverlay,
  type Overlay,
  type OverlayEvent,
  overlay,
  type Values,
} from './core/overlay.ts'
import type { BatchAck, Place, TextRow } from './core/pull.ts'
import { FORGET } from './outbox.ts'
import { openDatabase, PERSON, TENANT } from './testing/harness.ts'

vi.setConfig({ testTimeout: 120_000 })

const SEED = Number(process.env['SEED'] ?? Date.now() % 2_147_483_647)
const SECONDS = Number(process.env['MODEL_SECONDS'] ?? 20)

/** No table of the product adds up (yet). */
const counters = table(
  'counters',
  {
    group: 'core',
    visibility: { browser: 'tenant', gateway: 'tenant' },
    write: { browser: 'member', gateway: 'tenant' },
  },
  {
    label: c.text().null(),
    n: c.int().default('0').merge('increment'),
    amount: c.numeric().null().merge('increment'),
    marks: c.texts().default("'{}'").merge('add_remove'),
  },
)
/** The columns that are compared, of tables that people write. */
const WRITTEN: Readonly<Record<string, { spec: TableSpec; columns: readonly string[] }>> = {
  contacts: { spec: tables.contacts, columns: ['name', 'title', 'notes', 'company', 'tags'] },
  streams: { spec: tables.streams, columns: ['name', 'description'] },
  counters: { spec: counters, columns: ['label', 'n', 'amount', 'marks'] },
}
const names = Object.keys(WRITTEN)
const FROM_SERVER: Readonly<Record<string, readonly string[]>> = {
  client_progress: ['replica_id', 'last_seq', 'last_mutation_id'],
  mutation_results: ['replica_id', 'seq', 'outcome', 'code'],
}
const differences: DifferencesOf = (name) =>
  Object.fromEntries(
    Object.entries(WRITTEN[name]?.spec.columns ?? {}).flatMap(([column, { spec }]): [string, DifferenceRule][] =>
      isDifferenceRule(spec.merge) ? [[column, spec.merge]] : [],
    ),
  )
const typeOf = (name: string, column: string): string => WRITTEN[name]?.spec.columns[column]?.spec.type ?? 'text'

const uuid = (kind: number, n: number): string =>
  `0197f000-0000-7000-8${kind.toString(16).padStart(3, '0')}-${n.toString(16).padStart(12, '0')}`
const rowId = (name: string, n: number): string => uuid(names.indexOf(name) + 1, n)
const replicaId = (n: number): string => uuid(0xabc, n + 1)

// ---------------------------------------------------------------------------------------------------------------- both sides

interface Both {
  readonly db: PGlite
  readonly applier: Applier
  model: Overlay
  reminted: number
  /** For values that are each another one. */
  ticks: number
}

/** One statement of a local transaction. */
interface Statement {
  readonly op: 'insert' | 'update' | 'delete' | 'restore'
  readonly table: string
  readonly row: number
  readonly set: Values
}

type Happening =
  | { readonly type: 'write'; readonly now: number; readonly statements: readonly Statement[] }
  | { readonly type: 'apply'; readonly batches: readonly ServerBatch[] }
  | {
      readonly type: 'load' | 'stage'
      readonly table: string
      readonly rows: readonly ServerRow[]
      readonly many?: boolean
    }
  | { readonly type: 'begin_staging'; readonly table: string }
  | { readonly type: 'swap'; readonly table: string; readonly place: number; readonly acked?: number | undefined }
  | { readonly type: 'results'; readonly refused: readonly number[] }
  | { readonly type: 'accept' | 'realign' | 'settle'; readonly upto: number; readonly former?: boolean | undefined }
  | { readonly type: 'remint' }
  | { readonly type: 'discard'; readonly nth: number }

interface ServerRow {
  readonly row: number
  readonly set: Values
  readonly gone?: boolean | undefined
}
interface ServerBatch {
  readonly table: string
  readonly upserts: readonly ServerRow[]
  readonly deletes: readonly number[]
  readonly place?: number | undefined
  readonly acked?: number | undefined
}

/** Every column that is compared, as Postgres' text; what is not given is null, or nothing of its kind. */
function serverRow(both: Both, name: string, { row, set, gone }: ServerRow): TextRow {
  const columns = WRITTEN[name]?.columns ?? []
  const text = Object.fromEntries(
    columns.map((column) => {
      const value = set[column] ?? emptyOf(name, column)
      return [column, Array.isArray(value) ? `{${value.join(',')}}` : value === null ? null : String(value)]
    }),
  )
  const at = `2026-01-01 00:00:00.${String(++both.ticks).padStart(6, '0')}+00`.replace(/0+\+00$/, '+00')
  const rest = { tenant_id: TENANT, created_at: '2026-01-01 00:00:00+00', updated_at: at, deleted_at: gone ? at : null }
  return { id: rowId(name, row), ...rest, ...text }
}

const emptyOf = (name: string, column: string): unknown =>
  ({ 'text[]': [], integer: '0' })[typeOf(name, column)] ?? (column === 'name' ? 'unnamed' : null)

const placeOf = (n: number | undefined): Place | undefined =>
  n === undefined ? undefined : { handle: `h${n % 3}`, offset: n % 4 === 0 ? '0_inf' : `${n}_0`, position: BigInt(n) }

const ackOf = (seq: number | undefined): BatchAck | undefined =>
  seq === undefined
    ? undefined
    : { seq, lsn: seq % 3 === 0 ? undefined : BigInt(seq * 10), mutationId: uuid(0xacc, seq) }

/** Does it to the database, and to the model. */
async function happen(both: Both, what: Happening): Promise<void> {
  const { db, applier } = both
  const step = (event: OverlayEvent): void => {
    both.model = overlay(both.model, event)
  }
  switch (what.type) {
    case 'write':
      return write(both, what.now, what.statements)
    case 'apply': {
      const batches = what.batches.map(({ table: name, upserts, deletes, place, acked }) => {
        const ups = upserts.map((row) => serverRow(both, name, row))
        const gone = deletes.map((row) => rowId(name, row)).filter((id) => !ups.some((row) => row['id'] === id))
        return { table: name as TableName, upserts: ups, deletes: gone, place: placeOf(place), ack: ackOf(acked) }
      })
      await Promise.all(batches.map((batch) => applier.apply(batch)))
      for (const batch of batches) step({ type: 'apply', ...batch })
      return
    }
    case 'load':
    case 'stage': {
      const more = Array.from({ length: what.many ? 60 : 0 }, (_, n): ServerRow => ({ row: 100 + n, set: {} }))
      const rows = [...what.rows, ...more].map((row) => serverRow(both, what.table, row))
      await (what.type === 'load'
        ? applier.load(what.table as TableName, rows)
        : applier.stage(what.table as TableName, rows))
      return step({ type: what.type, table: what.table, rows })
    }
    case 'begin_staging':
      await applier.beginStaging(what.table as TableName)
      return step(what)
    case 'swap': {
      const [place, ack] = [placeOf(what.place) as Place, ackOf(what.acked)]
      await applier.swap(what.table as TableName, place, ack)
      return step({ type: 'swap', table: what.table, place, ack })
    }
    case 'results': {
      const upserts = what.refused.map(
        (seq): TextRow => ({
          ...{ id: uuid(0xe5, seq + 1000 * both.reminted), tenant_id: TENANT, replica_id: both.model.replicaId },
          ...{ seq: String(seq), mutation_id: uuid(0xacc, seq), outcome: seq % 4 === 3 ? 'applied' : 'rejected' },
          code: seq % 2 === 0 ? 'stale' : null,
          ...{ created_at: '2026-01-01 00:00:00+00', updated_at: '2026-01-01 00:00:00+00' },
        }),
      )
      await applier.apply({ table: 'mutation_results', upserts, deletes: [] })
      return step({ type: 'apply', table: 'mutation_results', upserts, deletes: [] })
    }
    case 'accept':
    case 'realign':
    case 'settle': {
      const under = what.former ? replicaId(both.reminted - 1) : both.model.replicaId
      await db.query(`select sync.${what.type}($1, $2)`, [what.upto, under])
      if (what.type === 'realign') return step({ type: 'realign', replicaId: under, expected: what.upto })
      return step({ type: what.type, replicaId: under, upto: what.upto })
    }
    case 'remint':
      both.reminted++
      await db.query('select sync.remint($1)', [replicaId(both.reminted)])
      return step({ type: 'remint', replicaId: replicaId(both.reminted) })
    case 'discard': {
      const refused = both.model.outbox.filter(({ state }) => state === 'rejected')
      // Or one that is none: nothing happens.
      const seq = (refused[what.nth % Math.max(1, refused.length)] ?? both.model.outbox[0])?.seq ?? 1
      await db.query(FORGET, [seq])
      return step({ type: 'discard', seq })
    }
  }
}

async function write(both: Both, now: number, statements: readonly Statement[]): Promise<void> {
  const changes: { table: string; id: string; op: 'insert' | 'update' | 'delete'; set: Values }[] = []
  const seq = both.model.next
  await both.db.transaction(async (tx) => {
    for (const { op, table: name, row, set } of statements) {
      const id = rowId(name, row)
      const t = quote(name)
      const params = (values: Values): unknown[] => Object.values(values)
      if (op === 'delete') {
        await tx.query(`delete from ${t} where id = $1`, [id])
        changes.push({ table: name, id, op, set: { deleted_at: `here ${++both.ticks}` } })
      } else if (op === 'restore') {
        await tx.query(`update ${t} set deleted_at = null where id = $1`, [id])
        changes.push({ table: name, id, op: 'update', set: { deleted_at: null } })
      } else if (op === 'insert') {
        const whole: Record<string, unknown> = { id, tenant_id: TENANT }
        for (const column of WRITTEN[name]?.columns ?? []) whole[column] = set[column] ?? emptyOf(name, column)
        const columns = Object.keys(whole)
        await tx.query(
          `insert into ${t} (${columns.map(quote)}) values (${columns.map((_, n) => `$${n + 1}`)}) on conflict do nothing`,
          params(whole),
        )
        changes.push({ table: name, id, op, set: whole })
      } else if (Object.keys(set).length > 0) {
        const columns = Object.keys(set)
        await tx.query(`update ${t} set ${columns.map((column, n) => `${quote(column)} = $${n + 2}`)} where id = $1`, [
          id,
          ...params(set),
        ])
        changes.push({ table: name, id, op, set })
      }
    }
    await tx.query('select sync.finish($1, null, null, null)', [now])
  })
  const { rows } = await both.db.query<{ id: string }>('select mutation_id as id from sync.outbox where seq = $1', [
    seq,
  ])
  both.model = overlay(both.model, { type: 'wrote', mutationId: rows[0]?.id ?? 'none', now, changes })
}

// ------------------------------------------------------------------------------------------------------------------ comparing

const columnsOf = (name: string): readonly string[] => WRITTEN[name]?.columns ?? FROM_SERVER[name] ?? []

/** What SQL and model are compared in: only what both know, in one form. */
interface Facts {
  readonly rows: Values
  readonly base: Values
  readonly outbox: readonly unknown[]
  readonly shapes: Values
  readonly staged: readonly string[]
  readonly ack: unknown
  readonly next: number
  readonly clock: string
}

const FACTS = `select jsonb_build_object(
  'rows', (select coalesce(jsonb_object_agg(key, value), '{}') from (
    ${[...names, ...Object.keys(FROM_SERVER)]
      .map(
        (name) => `select '${name}/' || t.id as key, to_jsonb(t) ||
          jsonb_build_object('updated_at', case when b.row_id is null then t.updated_at::text end) as value
          from ${quote(name)} t left join sync.pending_base b on b.table_name = '${name}' and b.row_id = t.id`,
      )
      .join(' union all ')}) r),
  'base', (select coalesce(jsonb_object_agg(table_name || '/' || row_id, "row"), '{}') from sync.pending_base),
  'outbox', (select coalesce(jsonb_agg(jsonb_build_object('seq', o.seq, 'id', o.mutation_id, 'state', o.state, 'hlc', o.hlc, 'code', o.code, 'patches',
      (select jsonb_agg(jsonb_build_object('table', p.table_name, 'id', p.row_id, 'op', p.op, 'set', p.set, 'base', p.base) order by p.n)
       from sync.patches p where p.seq = o.seq)) order by o.seq), '[]') from sync.outbox o),
  'orphans', (select count(*) from sync.patches p where not exists (select from sync.outbox o where o.seq = p.seq)),
  'shapes', (select coalesce(jsonb_object_agg(table_name, jsonb_build_object('handle', handle, 'offset', "offset", 'position', position::text)), '{}')
    from sync.shapes where "offset" <> '-1'),
  'staged', (select coalesce(jsonb_agg(table_name || '/' || row_id order by table_name, row_id), '[]') from sync.staging),
  'me', (select jsonb_build_object('id', replica_id, 'ack', ack_seq, 'lsn', ack_lsn::text, 'mutation', ack_mutation, 'next', next_seq,
    'clock', hlc_ms || '-' || hlc_counter) from sync.replica)) as facts`

const compared = (name: string, row: Values | null, all: boolean): Values | null => {
  if (row === null) return null
  const held = [...columnsOf(name), ...(name in WRITTEN ? ['deleted_at'] : [])]
  return Object.fromEntries(
    held
      .filter((column) => all || Object.hasOwn(row, column))
      .map((column) => [column, plain(name, column, row[column])]),
  )
}

const plain = (name: string, column: string, value: unknown): unknown => {
  if (value === null || value === undefined) return null
  if (column === 'deleted_at') return 'gone'
  if (typeOf(name, column) === 'text[]' && typeof value === 'string')
    return value.slice(1, -1).split(',').filter(Boolean)
  if (typeOf(name, column) === 'numeric') return Number(value) // JSON loses the zeros at the end
  return Array.isArray(value) ? value : String(value)
}

interface Raw {
  rows: Record<string, Values>
  base: Record<string, Values | null>
  outbox: { seq: number; id: string; state: string; hlc: string; code: string | null; patches: RawPatch[] }[]
  orphans: number
  shapes: Values
  staged: string[]
  me: { id: string; ack: number; lsn: string | null; mutation: string | null; next: number; clock: string }
}
interface RawPatch {
  table: string
  id: string
  op: string
  set: Values
  base: Values
}

const tableOf = (key: string): string => key.slice(0, key.indexOf('/'))

const toFacts = (raw: Raw): Facts => ({
  rows: Object.fromEntries(
    Object.entries(raw.rows).map(([key, row]) => [
      key,
      { ...compared(tableOf(key), row, true), updated_at: row['updated_at'] },
    ]),
  ),
  base: Object.fromEntries(Object.entries(raw.base).map(([key, row]) => [key, compared(tableOf(key), row, true)])),
  outbox: raw.outbox.map((entry) => ({
    ...entry,
    patches: entry.patches.map((patch) => ({
      ...patch,
      set: compared(patch.table, patch.set, false),
      base: compared(patch.table, patch.base, false),
    })),
  })),
  shapes: raw.shapes,
  staged: raw.staged,
  ack: raw.me.ack === 0 ? null : { seq: raw.me.ack, lsn: raw.me.lsn, mutation: raw.me.mutation },
  next: raw.me.next,
  clock: `${raw.me.clock} ${raw.me.id}`,
})

const ofModel = (model: Overlay): Facts =>
  toFacts({
    rows: Object.fromEntries(
      [...model.rows].map(([key, row]) => [
        key,
        { ...row, updated_at: model.base.has(key) ? null : row['updated_at'] },
      ]),
    ),
    base: Object.fromEntries(model.base),
    outbox: model.outbox.map(({ seq, mutationId, state, hlc, code, patches }) => ({
      ...{ seq, id: mutationId, state, hlc, code: code ?? null },
      patches: [...patches],
    })),
    orphans: 0,
    shapes: Object.fromEntries(
      [...model.shapes].map(([name, { handle, offset, position }]) => [
        name,
        { handle, offset, position: position.toString() },
      ]),
    ),
    staged: [...model.staging.keys()].sort(),
    me: {
      id: model.replicaId,
      ack: model.ack?.seq ?? 0,
      lsn: model.ack?.lsn?.toString() ?? null,
      mutation: model.ack?.mutationId ?? null,
      next: model.next,
      clock: `${model.clock.ms}-${model.clock.counter}`,
    },
  })

async function compare({ db, model }: Both): Promise<void> {
  const { rows } = await db.query<{ facts: Raw }>(FACTS)
  const raw = rows[0]?.facts as Raw
  expect(raw.orphans, 'patches without a mutation').toBe(0)
  expect(toFacts(raw)).toEqual(ofModel(model))
}

// -------------------------------------------------------------------------------------------------------------------- drawing

const few = fc.integer({ min: 0, max: 2 })
const tags = fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 })
const word = fc.constantFrom('x', 'y', 'z', null)
const some = (values: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Values> =>
  fc.record(values, { requiredKeys: [] }) as fc.Arbitrary<Values>
const SETS: Readonly<Record<string, fc.Arbitrary<Values>>> = {
  contacts: some({ name: fc.constantFrom('n', 'm'), title: word, notes: word, company: word, tags }),
  streams: some({ name: fc.constantFrom('n', 'm'), description: word }),
  counters: some({
    label: word,
    n: fc.integer({ min: -3, max: 5 }).map(String),
    amount: fc.oneof(
      fc.integer({ min: -20, max: 20 }).map((n) => (n / 10).toFixed(1)),
      fc.constant(null),
    ),
    marks: tags,
  }),
}
const written = fc.constantFrom(...names)
const of = <T>(make: (name: string, set: fc.Arbitrary<Values>) => fc.Arbitrary<T>): fc.Arbitrary<T> =>
  written.chain((name) => make(name, SETS[name] as fc.Arbitrary<Values>))

const statement = of(
  (name, set): fc.Arbitrary<Statement> =>
    fc.record({
      op: fc.constantFrom('insert', 'update', 'update', 'delete', 'restore') as fc.Arbitrary<Statement['op']>,
      table: fc.constant(name),
      row: few,
      set,
    }),
)
const serverRows = (set: fc.Arbitrary<Values>): fc.Arbitrary<ServerRow[]> =>
  fc.uniqueArray(fc.record({ row: few, set, gone: fc.boolean() }), { maxLength: 3, selector: ({ row }) => row })
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
const seq = fc.integer({ min: 0, max: 9 })
const place = fc.integer({ min: 0, max: 40 })
const serverBatch: fc.Arbitrary<ServerBatch> = fc.oneof(
  {
    weight: 30,
    arbitrary: of((name, set) =>
      fc.record({
        table: fc.constant(name),
        upserts: serverRows(set),
        deletes: fc.uniqueArray(few, { maxLength: 2 }),
        place: optional(place),
      }),
    ),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      table: fc.constant('client_progress'),
      upserts: fc.constant([]),
      deletes: fc.constant([]),
      place: optional(place),
      acked: optional(seq),
    }),
  },
)
const writing: fc.Arbitrary<Happening> = fc.record({
  type: fc.constant('write' as const),
  now: fc.integer({ min: 1, max: 5 }),
  statements: fc.array(statement, { minLength: 1, maxLength: 5 }),
})
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 80, arbitrary: writing },
  {
    weight: 60,
    arbitrary: fc.record({
      type: fc.constant('apply' as const),
      batches: fc.array(serverBatch, { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 20,
    arbitrary: of((name, set) =>
      fc.record({
        type: fc.constantFrom('load' as const, 'stage' as const),
        table: fc.constant(name),
        rows: serverRows(set),
      }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constant({ type: 'load' as const, table: 'streams', rows: [], many: true }),
  },
  { weight: 10, arbitrary: fc.record({ type: fc.constant('begin_staging' as const), table: written }) },
  {
    weight: 15,
    arbitrary: fc.record({
      type: fc.constant('swap' as const),
      table: fc.oneof(written, fc.constant('client_progress')),
      place,
      acked: fc.constant(undefined),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      type: fc.constant('results' as const),
      refused: fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 50,
    arbitrary: fc.record({
      type: fc.constantFrom('accept' as const, 'realign' as const, 'settle' as const, 'settle' as const),
      upto: seq,
      former: fc.oneof({ weight: 50, arbitrary: fc.constant(false) }, { weight: 10, arbitrary: fc.constant(true) }),
    }),
  },
  { weight: 7, arbitrary: fc.constant({ type: 'remint' as const }) },
  { weight: 10, arbitrary: fc.record({ type: fc.constant('discard' as const), nth: few }) },
)

// ---------------------------------------------------------------------------------------------------------------------- tests

let db: PGlite
beforeAll(async () => {
  db = await openDatabase()
  await db.exec(createTable(counters))
  await db.exec(attachTable(counters))
})
afterAll(async () => db.close())

async function fresh(): Promise<Both> {
  const model = newOverlay(replicaId(0), differences)
  await db.exec(`begin; set local sync.applying = 'on';
    ${[...names, ...Object.keys(FROM_SERVER)].map((name) => `delete from ${quote(name)};`).join(' ')}
    truncate sync.outbox, sync.patches, sync.pending_base, sync.shapes, sync.staging, sync.replica;
    insert into sync.replica (replica_id, tenant_id, kind, owner_id) values ('${model.replicaId}', '${TENANT}', 'browser', '${PERSON}');
    commit;`)
  return { db, applier: createApplier(db, () => undefined), model, reminted: 0, ticks: 0 }
}

async function run(...happenings: readonly Happening[]): Promise<Both> {
  const both = await fresh()
  for (const what of happenings) {
    await happen(both, what)
    await compare(both)
  }
  return both
}

test(`O1–O9, R1, R6: after whatever happens, the database holds what the model says (SEED=${SEED})`, async () => {
  let events = 0
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { minLength: 1, maxLength: 40, size: 'max' }), async (happenings) => {
      await run(...happenings)
      events += happenings.length
    }),
    { seed: SEED, numRuns: 100_000, interruptAfterTimeLimit: SECONDS * 1000, markInterruptAsFailure: false },
  )
  // That it did run: a machine that is busy for all of the time would else pass without having tried anything.
  expect(events).toBeGreaterThan(100)
  console.info(`${events} events compared`)
})

// ------------------------------------------------------------------------------------------------- what has a name of its own

const contact = (set: Values, row = 0): ServerRow => ({ row, set })
const fromServer = (name: string, ...upserts: ServerRow[]): Happening => ({
  type: 'apply',
  batches: [{ table: name, upserts, deletes: [] }],
})
const local = (...statements: [Statement['op'], string, Values?][]): Happening => ({
  type: 'write',
  now: 1,
  statements: statements.map(([op, name, set = {}]) => ({ op, table: name, row: 0, set })),
})
const shown = ({ model }: Both, name: string): Values | undefined => model.rows.get(`${name}/${rowId(name, 0)}`)

test('O1, O8: a row changed and changed back is the server’s again, the time of its change included', async () => {
  const both = await run(
    fromServer('contacts', contact({ name: 'n', title: 'x' })),
    local(['update', 'contacts', { title: 'y' }], ['update', 'contacts', { title: 'x' }]),
  )
  expect(both.model).toMatchObject({ outbox: [], next: 1 })
  expect(both.model.base.size).toBe(0)
})

test('O2, O9: the echo of an insert is not added up, and what others added to it stays', async () => {
  const both = await run(
    local(['insert', 'counters', { n: '5', marks: ['a'] }]),
    fromServer('counters', { row: 0, set: { n: '7', marks: ['a', 'b'] } }),
  )
  expect(shown(both, 'counters')).toMatchObject({ n: '7', marks: ['a', 'b'] })
})

test('O3: an update of a row that the server removed shows nothing, and the row may be made anew', async () => {
  const gone: Happening = { type: 'apply', batches: [{ table: 'contacts', upserts: [], deletes: [0] }] }
  const updated = [fromServer('contacts', contact({ name: 'n' })), local(['update', 'contacts', { title: 'y' }]), gone]
  expect(shown(await run(...updated), 'contacts')).toBeUndefined()
  const again = await run(...updated, local(['insert', 'contacts', { name: 'm' }], ['delete', 'contacts']))
  expect(shown(again, 'contacts')).toBeUndefined()
  expect(again.model.base.size).toBe(1)
})

test('O4: a refused mutation is undone exactly, below those that follow', async () => {
  const both = await run(
    fromServer('counters', { row: 0, set: { n: '10', label: 'x' } }),
    local(['update', 'counters', { n: '11', label: 'y' }]),
    local(['update', 'counters', { n: '13' }]),
    { type: 'results', refused: [1] },
    { type: 'settle', upto: 1 },
  )
  expect(shown(both, 'counters')).toMatchObject({ n: '12', label: 'x' })
  expect(both.model.outbox).toMatchObject([
    { seq: 1, state: 'rejected' },
    { seq: 2, state: 'pending' },
  ])
})

test('O5, O9, R6: what comes goes below pending changes, also by a refetch', async () => {
  const counted = { row: 0, set: { n: '20', label: 'theirs', marks: ['b', 'c'] } }
  const both = await run(
    fromServer('counters', { row: 0, set: { n: '10', label: 'old', marks: ['a', 'b'] } }),
    local(['update', 'counters', { n: '13', marks: ['b', 'mine'] }]),
    { type: 'begin_staging', table: 'counters' },
    { type: 'stage', table: 'counters', rows: [counted] },
    { type: 'swap', table: 'counters', place: 4 },
  )
  expect(shown(both, 'counters')).toMatchObject({ n: '23', label: 'theirs', marks: ['b', 'c', 'mine'] })
})

test('O9: the order that somebody gave a set is kept while nobody else has changed it', async () => {
  const both = await run(
    fromServer('contacts', contact({ name: 'n', tags: ['a', 'b'] })),
    local(['update', 'contacts', { tags: ['b', 'c', 'a'] }]),
    fromServer('contacts', contact({ name: 'm', tags: ['a', 'b'] })),
  )
  expect(shown(both, 'contacts')).toMatchObject({ name: 'm', tags: ['b', 'c', 'a'] })
})

test('O6: refused ones and their numbers stay aside under a new identity; the waiting ones begin anew', async () => {
  const both = await run(
    local(['insert', 'contacts', { name: 'n' }]),
    local(['insert', 'streams', { name: 'n' }]),
    local(['insert', 'counters']),
    { type: 'results', refused: [1] },
    { type: 'settle', upto: 1 },
    { type: 'accept', upto: 2 },
    { type: 'remint' },
    { type: 'accept', upto: 9, former: true },
    { type: 'settle', upto: 9, former: true },
  )
  expect(both.model.outbox).toMatchObject([
    { seq: -1, state: 'rejected' },
    { seq: 1, state: 'pending' },
    { seq: 2, state: 'pending' },
  ])
  expect(both.model.next).toBe(3)
})

test('O7: a server that expects what it had acknowledged was restored: its acknowledgement is void', async () => {
  const acknowledged = (acked: number, place: number): Happening => ({
    type: 'apply',
    batches: [{ table: 'client_progress', upserts: [], deletes: [], place, acked }],
  })
  const written = [local(['insert', 'contacts', { name: 'n' }]), local(['insert', 'streams', { name: 'n' }])]
  const both = await run(...written, acknowledged(2, 5), { type: 'realign', upto: 2 })
  expect(both.model.ack).toBeUndefined()
  expect(both.model.outbox).toMatchObject([{ state: 'accepted' }, { state: 'pending' }])
  const anew = await run(...written, acknowledged(2, 5), acknowledged(1, 8))
  expect(anew.model.ack).toMatchObject({ seq: 1 })
  expect(anew.model.outbox).toMatchObject([{ state: 'accepted' }, { state: 'pending' }])
})
