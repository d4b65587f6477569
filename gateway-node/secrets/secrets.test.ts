import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { seal } from '@hq/shared/domain/sealing.ts'
import { expect, it, onTestFinished, vi } from 'vitest'
import { makeIdentity } from '../registration-identity.ts'
import { createTestGateway, newId, type TestGateway } from '../testing/context.ts'
import { envFilePath, formatEnv, parseEnv, readEnvFile, writeEnvFile } from './env-file.ts'
import { createSecrets } from './secrets.ts'

const VALUE = 'plain-text-that-only-the-agent-may-see'

interface Given {
  id?: string
  agentId?: string | null
  key?: string
  version?: number
  category?: string
  publicKey?: string
}

async function start(gateway: TestGateway, keys = makeIdentity()) {
  const hidden: string[] = []
  const { context } = gateway
  const log = Object.assign(context.log, { addSecret: (value: string) => void hidden.push(value) })
  const service = createSecrets({ context: { ...context, log }, keys })
  onTestFinished(() => service.stop())
  await service.start()
  /** As a browser does it: one transaction, the value sealed before. */
  const set = async (value: string, given: Given = {}): Promise<string> => {
    const { id = newId(), agentId = null, key = 'GITHUB_TOKEN', version = 1, category = 'user' } = given
    const { tenantId, gatewayId } = context
    const publicKey = given.publicKey ?? keys.public_key
    const place = { tenantId, gatewayId, secretId: id, version, use: [key, agentId ?? '', category] }
    const sealed = await seal(publicKey, place, value)
    await gateway.replica.write(async (tx) => {
      if (version === 1)
        await tx.query(
          'insert into secrets (id, tenant_id, gateway_id, agent_id, key, name, category) values ($1, $2, $3, $4, $5, $5, $6)',
          [id, tenantId, gatewayId, agentId, key, category],
        )
      else await tx.query('update secrets set version = $2 where id = $1', [id, version])
      await tx.query(
        'insert into sealed_secrets (id, tenant_id, gateway_id, secret_id, version, sealed, public_key) values ($1, $2, $3, $4, $5, $6, $7)',
        [newId(), tenantId, gatewayId, id, version, sealed, publicKey],
      )
    })
    return id
  }
  const stands = (id: string, row: Record<string, unknown>) =>
    vi.waitFor(async () => expect(await gateway.row('secrets', id)).toMatchObject(row), { timeout: 20_000 })
  return { set, stands, hidden, service, home: context.home, context }
}

it('an agent gets its secrets, the gateway’s too, its own first; the files are the owner’s only', async () => {
  const gateway = await createTestGateway()
  const [ada, bob] = [await gateway.addAgent('ada'), await gateway.addAgent('bob')]
  const { set, stands, hidden, home } = await start(gateway)
  const ids = [
    await set('for all'),
    await set('for ada', { agentId: ada }),
    await set(VALUE, { agentId: bob, key: 'OTHER' }),
    await set('for the model', { key: 'MODEL_KEY', category: 'model' }),
  ]
  for (const id of ids) await stands(id, { sync_status: 'active', synced_version: 1, sync_error: null })
  expect(await readEnvFile(home, 'ada')).toEqual(new Map([['GITHUB_TOKEN', 'for ada']]))
  expect(await readEnvFile(home, 'bob')).toEqual(
    new Map([
      ['GITHUB_TOKEN', 'for all'],
      ['OTHER', VALUE],
    ]),
  )
  expect((await stat(envFilePath(home, 'bob'))).mode & 0o777).toBe(0o600)
  expect(hidden).toContain(VALUE)
  expect(JSON.stringify(await gateway.replica.query('select * from secrets'))).not.toContain(VALUE)
  expect(JSON.stringify(gateway.log)).not.toContain(VALUE)
})

it('a new value replaces the old, whose sealed form is emptied; revoked, it is gone everywhere', async () => {
  const gateway = await createTestGateway()
  const ada = await gateway.addAgent('ada')
  const { set, stands, home } = await start(gateway)
  const id = await set('first', { agentId: ada })
  await stands(id, { sync_status: 'active', synced_version: 1 })
  await set('second', { id, agentId: ada, version: 2 })
  await stands(id, { sync_status: 'active', synced_version: 2 })
  expect((await readEnvFile(home, 'ada')).get('GITHUB_TOKEN')).toBe('second')
  const left = () => gateway.replica.query(`select version from sealed_secrets where sealed <> ''`)
  expect(await left()).toEqual([{ version: 2 }])

  await gateway.replica.write((tx) => tx.query('update secrets set deleted_at = now() where id = $1', [id]))
  await stands(id, { sync_status: 'revoked', synced_version: null })
  await expect(readFile(envFilePath(home, 'ada'), 'utf8')).rejects.toThrow(/ENOENT/)
  expect(await left()).toEqual([])
})

it('a new value that does not open leaves the old one in place, and says what to do', async () => {
  const gateway = await createTestGateway()
  const ada = await gateway.addAgent('ada')
  const { set, stands, home } = await start(gateway)
  const id = await set('first', { agentId: ada })
  await stands(id, { sync_status: 'active' })
  await set('second', { id, agentId: ada, version: 2, publicKey: makeIdentity().public_key })
  await stands(id, {
    sync_status: 'error',
    synced_version: 1,
    sync_error: expect.stringContaining('Set the value again'),
  })
  expect((await readEnvFile(home, 'ada')).get('GITHUB_TOKEN')).toBe('first')
})

it('a sealed value put below another name, agent or category does not open', async () => {
  const gateway = await createTestGateway()
  const [ada, bob] = [await gateway.addAgent('ada'), await gateway.addAgent('bob')]
  const { set, stands, home } = await start(gateway)
  const id = await set(VALUE, { agentId: ada })
  await stands(id, { sync_status: 'active' })
  await gateway.replica.write((tx) => tx.query('update secrets set agent_id = $2 where id = $1', [id, bob]))
  await stands(id, { sync_status: 'error', synced_version: null })
  expect([...(await readEnvFile(home, 'ada')), ...(await readEnvFile(home, 'bob'))]).toEqual([])
})

it('a dangerous name is never written, even when a row has it', async () => {
  const gateway = await createTestGateway()
  const ada = await gateway.addAgent('ada')
  const { set, stands, home } = await start(gateway)
  const id = await set('/evil.so', { agentId: ada, key: 'LD_PRELOAD' })
  await stands(id, { sync_status: 'error', sync_error: expect.stringContaining('LD_PRELOAD') })
  expect([...(await readEnvFile(home, 'ada'))]).toEqual([])
})

it('an agent that comes later gets the gateway’s secrets, one that goes loses its file', async () => {
  const gateway = await createTestGateway()
  const { set, stands, home } = await start(gateway)
  await stands(await set(VALUE), { sync_status: 'active' })
  const ada = await gateway.addAgent('ada')
  const has = (value: string | undefined) =>
    vi.waitFor(async () => expect((await readEnvFile(home, 'ada')).get('GITHUB_TOKEN')).toBe(value), {
      timeout: 20_000,
    })
  await has(VALUE)
  await gateway.replica.write((tx) => tx.query('update agents set deleted_at = now() where id = $1', [ada]))
  await has(undefined)
})

it('a file that others could read, or with other content, is made right at the start', async () => {
  const gateway = await createTestGateway()
  const ada = await gateway.addAgent('ada')
  const { home } = gateway.context
  await mkdir(join(home, 'agents'), { recursive: true })
  await writeFile(envFilePath(home, 'ada'), `STALE='x'\n`)
  await chmod(envFilePath(home, 'ada'), 0o644)
  await writeFile(`${envFilePath(home, 'ada')}.99-1.tmp`, `LEFT='x'\n`)
  const { set, stands } = await start(gateway)
  await stands(await set(VALUE, { agentId: ada }), { sync_status: 'active' })
  expect(await readFile(envFilePath(home, 'ada'), 'utf8')).toBe(`GITHUB_TOKEN='${VALUE}'\n`)
  expect((await stat(envFilePath(home, 'ada'))).mode & 0o777).toBe(0o600)
  await expect(stat(`${envFilePath(home, 'ada')}.99-1.tmp`)).rejects.toThrow(/ENOENT/)
})

it('any value survives the file, whatever quotes and lines it has; the same content with another mode is set right', async () => {
  const values = new Map([
    ['A', `it's "quoted" $HOME \`x\` \\ end`],
    ['B', `-----BEGIN KEY-----\nB='no'\n-----END-----\n`],
    ['C', ''],
  ])
  expect(parseEnv(formatEnv(values))).toEqual(values)
  const { context } = await createTestGateway()
  await mkdir(join(context.home, 'agents'), { recursive: true })
  await writeEnvFile(context.home, 'ada', values)
  await chmod(envFilePath(context.home, 'ada'), 0o644)
  await writeEnvFile(context.home, 'ada', values)
  expect((await stat(envFilePath(context.home, 'ada'))).mode & 0o777).toBe(0o600)
})
