/** Containers as a gateway's commands told them. Pure. */
import { z } from 'zod'

const factsSchema = z.object({
  id: z.string(),
  name: z.string(),
  image: z.string(),
  state: z.string(),
  memory_mb: z.number().nullable(),
  memory_limit_mb: z.number().nullable(),
  cpu_pct: z.number().nullable(),
  cpu_limit: z.number().nullable(),
  exit_code: z.number().nullable(),
})
export type ContainerFacts = z.infer<typeof factsSchema>

/** Of the last look, and over it what a later start or stop said of one of them. What can't be read is left out. */
export function containersIn(
  listed: unknown,
  deed: { readonly result: unknown; readonly completed_at: string | null } | undefined,
  listedAt: string | null,
): readonly ContainerFacts[] {
  const list = z.object({ containers: z.array(z.unknown()) }).safeParse(listed)
  const all = (list.data?.containers ?? []).flatMap((each) => {
    const facts = factsSchema.safeParse(each)
    return facts.success ? [facts.data] : []
  })
  const later = z.object({ container: factsSchema }).safeParse(deed?.result)
  const isLater =
    deed?.completed_at != null && listedAt !== null && Date.parse(deed.completed_at) > Date.parse(listedAt)
  return later.success && isLater
    ? all.map((each) => (each.id === later.data.container.id ? later.data.container : each))
    : all
}

/** "12.5 of 64 MB · 3% of 2 cores". */
export function usageOf({ memory_mb, memory_limit_mb, cpu_pct, cpu_limit }: ContainerFacts): string {
  const memory =
    memory_mb === null
      ? memory_limit_mb === null
        ? 'no memory limit'
        : `at most ${memory_limit_mb} MB`
      : `${memory_mb}${memory_limit_mb === null ? ' MB, no limit' : ` of ${memory_limit_mb} MB`}`
  const cores = cpu_limit === null ? '' : ` of ${cpu_limit} core${cpu_limit === 1 ? '' : 's'}`
  const cpu = cpu_pct === null ? (cores ? `at most${cores.slice(3)}` : undefined) : `${cpu_pct}%${cores}`
  return [memory, cpu].filter((each) => each !== undefined).join(' · ')
}
