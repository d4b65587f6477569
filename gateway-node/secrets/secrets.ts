/**
 * The secrets of this gateway's agents: opens what people sealed for it, puts it where the agents' programs find it, and says how that went.
 *
 *  S1 What is in the rows decides. Every look starts from them and makes files and reports agree; a look may be ended anywhere and begun again.
 *  S2 A secret of the gateway goes to each of its agents, one of an agent to that agent, which wins over the gateway's of the same name. Those of category `model` go to
 *     no agent: they stay sealed and are opened when the model is asked.
 *  S3 While the value of a newer version has not come, agents keep the one before.
 *  S4 Revoked: gone from the files first, then the sealed values are emptied, then the secret is reported as revoked. Superseded values are emptied too.
 *  S5 A value is known to the log, which hides it, before it is written anywhere. No value is ever in a row, a message or an error.
 */
import { open } from '@hq/shared/domain/sealing.ts'
import { secretNameProblem } from '@hq/shared/domain/secret-names.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { readCredentials } from '../registration.ts'
import type { GatewayContext, Log, Service } from '../service.ts'
import { removeOthers, writeEnvFile } from './env-file.ts'

type Secret = Row<'secrets'>
type Sealed = Row<'sealed_secrets'>

export interface SecretsOptions {
  readonly context: Pick<GatewayContext, 'replica' | 'gatewayId' | 'tenantId' | 'home' | 'problems'> & {
    readonly log: Log & { addSecret?(value: string): void }
  }
  /** This gateway's own, from its registration. */
  readonly keys: { readonly public_key: string; readonly private_key: string }
}

interface Finding {
  readonly value?: string
  readonly version?: number
  readonly status: Secret['sync_status']
  readonly error: string | null
}

const SEAL_AGAIN =
  'It was sealed for another key of this gateway, which it does not have any more. Set the value again, and it is sealed for the present key.'
const BROKEN = 'The sealed value could not be opened: it was damaged, or sealed for another place. Set the value again.'

export function createSecrets({ context, keys }: SecretsOptions): Service {
  const { replica, gatewayId, tenantId, home, log, problems } = context
  let stopped = false
  let again = false
  let looking: Promise<void> | undefined
  let ends: (() => void)[] = []

  function poke(): void {
    if (stopped || !replica.status().initial.done) return
    if (looking) {
      again = true
      return
    }
    looking = look()
      .then(
        () => problems.clear('secrets'),
        (error: unknown) => {
          log('error', 'The secrets could not be brought to the agents', { error })
          problems.report(
            'secrets',
            'Secrets could not be written to this gateway’s disk. Free some space or give it the right to write, then restart it.',
          )
        },
      )
      .finally(() => {
        looking = undefined
        if (again) {
          again = false
          poke()
        }
      })
  }

  async function look(): Promise<void> {
    const secrets = await replica.query<Secret>('select * from secrets where gateway_id = $1 order by id', [gatewayId])
    const sealed = await replica.query<Sealed>(
      `select * from sealed_secrets where gateway_id = $1 and deleted_at is null and sealed <> '' order by version desc`,
      [gatewayId],
    )
    const agents = await replica.query<{ id: string; slug: string }>(
      'select id, slug from agents where gateway_id = $1 and deleted_at is null',
      [gatewayId],
    )
    const here = new Set(agents.map(({ id }) => id))
    const findings = new Map<string, Finding>()
    for (const secret of secrets) {
      if (stopped) return
      const own = sealed.filter(({ secret_id }) => secret_id === secret.id)
      findings.set(secret.id, secret.deleted_at ? { status: 'revoked', error: null } : await find(secret, own, here))
    }
    for (const { id, slug } of agents) await writeEnvFile(home, slug, variablesOf(id, secrets, findings))
    await removeOthers(home, new Set(agents.map(({ slug }) => slug)))
    await report(secrets, sealed, findings)
  }

  async function find(secret: Secret, own: readonly Sealed[], here: ReadonlySet<string>): Promise<Finding> {
    const nameProblem = secretNameProblem(secret.key)
    if (nameProblem) return { status: 'error', error: nameProblem }
    let trouble: string | undefined
    for (const one of own) {
      const opened = await open(
        keys.private_key,
        {
          tenantId,
          gatewayId,
          secretId: secret.id,
          version: one.version,
          use: [secret.key, secret.agent_id ?? '', secret.category],
        },
        one.sealed,
      )
      if (!opened.ok || opened.value.includes('\0')) {
        trouble ??= one.public_key === keys.public_key ? BROKEN : SEAL_AGAIN
        continue
      }
      log.addSecret?.(opened.value)
      const { version } = one
      if (trouble) return { value: opened.value, version, status: 'error', error: trouble }
      if (version < secret.version) return { value: opened.value, version, status: 'pending', error: null }
      if (secret.agent_id !== null && !here.has(secret.agent_id))
        return { status: 'waiting', error: 'Its agent is not on this gateway.' }
      return { value: opened.value, version, status: 'active', error: null }
    }
    return trouble
      ? { status: 'error', error: trouble }
      : { status: 'waiting', error: 'No value has come yet. If it stays so, set the value again.' }
  }

  /** (S4) In one transaction: the report never says more than is so. */
  async function report(
    secrets: readonly Secret[],
    sealed: readonly Sealed[],
    findings: ReadonlyMap<string, Finding>,
  ): Promise<void> {
    const known = new Map(secrets.map((secret) => [secret.id, secret]))
    const done = sealed.filter(({ secret_id, version }) => {
      const finding = findings.get(secret_id)
      if (known.get(secret_id)?.deleted_at) return true
      return finding?.status === 'active' && version < (finding.version ?? 0)
    })
    const changed = secrets.filter((secret) => {
      const finding = findings.get(secret.id)
      return (
        finding &&
        (finding.status !== secret.sync_status ||
          (finding.version ?? null) !== secret.synced_version ||
          finding.error !== secret.sync_error)
      )
    })
    if (done.length + changed.length === 0) return
    await replica.write(async (tx) => {
      for (const { id } of done)
        await tx.query(`update sealed_secrets set sealed = '', deleted_at = now() where id = $1`, [id])
      for (const { id } of changed) {
        const { status = 'pending', version = null, error = null } = findings.get(id) ?? {}
        await tx.query(
          'update secrets set sync_status = $2, synced_version = $3, sync_error = $4, last_synced_at = now() where id = $1',
          [id, status, version, error],
        )
      }
    })
  }

  return {
    start: async () => {
      ends = [
        replica.onStatus(poke),
        replica.onChange((changes) => {
          if (changes.has('secrets') || changes.has('sealed_secrets') || changes.has('agents')) poke()
        }),
      ]
      poke()
    },
    stop: async () => {
      stopped = true
      for (const end of ends.splice(0)) end()
      await looking
    },
  }
}

/** With the keys that the gateway registered with. */
export function createOwnSecrets(context: SecretsOptions['context']): Service {
  let service: Service | undefined
  return {
    start: async () => {
      const keys = await readCredentials(context.home)
      if (!keys) throw new Error('its folder has no credentials.json')
      service = createSecrets({ context, keys })
      await service.start()
    },
    stop: async () => service?.stop(),
  }
}

/** (S2) */
function variablesOf(
  agentId: string,
  secrets: readonly Secret[],
  findings: ReadonlyMap<string, Finding>,
): Map<string, string> {
  const variables = new Map<string, string>()
  for (const scope of [null, agentId]) {
    for (const { id, key, agent_id, category } of secrets) {
      const value = findings.get(id)?.value
      if (agent_id === scope && category !== 'model' && value !== undefined) variables.set(key, value)
    }
  }
  return variables
}
