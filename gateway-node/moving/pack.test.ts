import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeIdentity } from '../registration-identity.ts'
import { createRunner } from '../runner/runner.ts'
import { createTestGateway, newId, noModels, type TestGateway } from '../testing/context.ts'
import { packAgent, unpackAgent } from './pack.ts'

const never = new AbortController().signal

/** A gateway with its own keys; `slug`: an agent that is set up there. */
async function gatewayWithKeys(): Promise<TestGateway & { publicKey: string }> {
  const gateway = await createTestGateway()
  const identity = makeIdentity()
  const { context } = gateway
  const who = { url: 'http://127.0.0.1:1', gateway_id: context.gatewayId, tenant_id: context.tenantId, slug: 'x' }
  await mkdir(context.home, { recursive: true })
  await writeFile(join(context.home, 'credentials.json'), JSON.stringify({ ...who, ...identity }), { mode: 0o600 })
  return { ...gateway, publicKey: identity.public_key }
}

it('only the new gateway opens it, only as this agent’s, only whole; then history and sessions are there', async () => {
  const [from, to, third] = [await gatewayWithKeys(), await gatewayWithKeys(), await gatewayWithKeys()]
  const runner = createRunner(from.context, noModels, { sweepMs: 3_600_000 })
  await runner.start()
  const id = await from.addAgent('wanda')
  expect(await from.command(await from.addCommand('provision', id))).toMatchObject({ status: 'done' })
  await runner.stop()
  await writeFile(join(from.context.home, 'agents/wanda/note.md'), 'a note\n')
  const sessions = join(from.context.home, 'openclaw/state/agents/wanda/sessions')
  await mkdir(sessions, { recursive: true })
  await writeFile(join(sessions, 'one.jsonl'), '{}\n')

  const agent = { id, slug: 'wanda' }
  const journey = { tenantId: newId(), toGatewayId: to.context.gatewayId, commandId: newId(), agent }
  const packed = await packAgent(from.context, journey, to.publicKey, join(from.context.home, 'moving/x'), never)
  expect(await readFile(packed.path, 'latin1')).not.toContain('a note')
  const there = { ...journey, workspaceSlug: 'acme' }
  const unpack = (gateway: TestGateway, changed: Partial<typeof there> = {}, path = packed.path) =>
    unpackAgent(
      gateway.context,
      { ...there, ...changed },
      packed.parcel,
      path,
      join(gateway.context.home, 'moving/y'),
      never,
    )

  await expect(unpack(third)).rejects.toThrow('sealed for another key')
  await expect(unpack(to, { agent: { id: newId(), slug: 'wanda' } })).rejects.toThrow('sealed for another key')
  await expect(unpack(to, { commandId: newId() })).rejects.toThrow('sealed for another key')
  const bytes = await readFile(packed.path)
  for (const damaged of [bytes.subarray(0, -20), Buffer.concat([bytes, Buffer.from('x')])]) {
    const path = join(to.context.home, 'damaged')
    await writeFile(path, damaged)
    await expect(unpack(to, {}, path)).rejects.toThrow('damaged')
  }
  expect(await to.context.workspaces.exists('wanda')).toBe(false)

  expect(await unpack(to)).toEqual({ commit: packed.commit })
  // Once more, as after a crash at the end.
  expect(await unpack(to)).toEqual({ commit: packed.commit })
  expect(await to.context.workspaces.head('wanda')).toBe(packed.commit)
  expect(await readFile(join(to.context.home, 'agents/wanda/note.md'), 'utf8')).toBe('a note\n')
  expect(await readFile(join(to.context.home, 'openclaw/state/agents/wanda/sessions/one.jsonl'), 'utf8')).toBe('{}\n')
})
