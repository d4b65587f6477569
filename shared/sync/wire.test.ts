import { expect, test } from 'vitest'
import { createWire } from './wire.ts'

const row = (id: string) => ({ key: id, value: { id, n: '1.00' }, headers: { operation: 'insert' } })
const upToDate = { headers: { control: 'up-to-date' } }
const response = (body: unknown) =>
  new Response(JSON.stringify(body), { headers: { 'electric-schema': '{"n":{"type":"numeric"}}' } })

test('Y1: the client sees control messages and one stub; the rows come back whole and in order', async () => {
  const wire = createWire()
  const messages = [row('a'), { headers: { control: 'snapshot-end' } }, row('b'), upToDate]
  const seen = (await (await wire.withoutRows(response(messages))).json()) as { headers: object; value?: object }[]
  expect(seen.map(({ headers }) => headers)).toEqual([
    { operation: 'insert', batch: 1 },
    { control: 'snapshot-end' },
    { control: 'up-to-date' },
  ])
  expect(wire.take(seen)).toEqual(messages)
})

test('Y2: rows of an answer that was thrown away are an error, never nothing', async () => {
  const wire = createWire()
  const first = (await (await wire.withoutRows(response([row('a')]))).json()) as { headers: object }[]
  for (let more = 0; more < 8; more++) await wire.withoutRows(response([row('b'), upToDate]))
  expect(() => wire.take(first)).toThrow(/no longer here/)
})

test('Y3: an answer without messages is shown as an overloaded server', async () => {
  for (const body of [[], {}, null, 7]) expect((await createWire().withoutRows(response(body))).status).toBe(502)
})
