import { cx, type Hue, hueOf, hueVar } from './cx.ts'

export type AvatarSize = 'xs' | 'sm' | 'md' | 'lg' | 'xl'

const BOX: Record<AvatarSize, string> = {
  xs: 'size-4 text-[8px]',
  sm: 'size-5 text-[9px]',
  md: 'size-6 text-[10px]',
  lg: 'size-8 text-xs',
  xl: 'size-12 text-lg',
}
const EMOJI: Record<AvatarSize, string> = {
  xs: 'size-4 text-[10px] rounded-sm',
  sm: 'size-5 text-[12px] rounded-sm',
  md: 'size-6 text-[14px] rounded-control',
  lg: 'size-8 text-[18px] rounded-[8px]',
  xl: 'size-12 text-[26px] rounded-card',
}

/** Up to two letters: first and last word; the first two characters of a name in a script without spaces. */
export function initials(name: string): string {
  const words = name.trim().split(/\s+/).filter(Boolean)
  const first = [...(words[0] ?? '?')]
  if (words.length < 2)
    return first
      .slice(0, /[\u3040-\u9fff\uac00-\ud7af]/.test(first[0] ?? '') ? 1 : 2)
      .join('')
      .toUpperCase()
  return `${first[0] ?? ''}${[...(words.at(-1) ?? '')][0] ?? ''}`.toUpperCase()
}

export type PersonAvatarProps = {
  name: string
  /** What the colour comes from; the name when left out. */
  id?: string | undefined
  size?: AvatarSize
  /** True when the name stands beside it. */
  decorative?: boolean
  className?: string | undefined
}

/** A person: initials in a circle, in a colour that stays theirs. */
export function PersonAvatar({ name, id, size = 'sm', decorative, className }: PersonAvatarProps) {
  const hue = hueVar(hueOf(id ?? name))
  return (
    <span
      {...(decorative ? { 'aria-hidden': true } : { role: 'img', 'aria-label': name, title: name })}
      style={{
        background: `color-mix(in oklch, ${hue} 20%, var(--surface-1))`,
        color: `color-mix(in oklch, ${hue} 45%, var(--text-1))`,
      }}
      className={cx(
        'inline-grid shrink-0 place-items-center rounded-full leading-none font-semibold select-none',
        BOX[size],
        className,
      )}
    >
      {initials(name)}
    </span>
  )
}

export type AgentAvatarProps = {
  name: string
  emoji: string
  /** The tile's tint; from the name when left out. */
  hue?: Hue | undefined
  size?: AvatarSize
  decorative?: boolean
  className?: string | undefined
}

/** An agent: its emoji on a rounded tile. People are round, agents are square. */
export function AgentAvatar({ name, emoji, hue, size = 'sm', decorative, className }: AgentAvatarProps) {
  const tint = hueVar(hue ?? hueOf(name))
  return (
    <span
      {...(decorative ? { 'aria-hidden': true } : { role: 'img', 'aria-label': name, title: name })}
      style={{
        background: `color-mix(in oklch, ${tint} 17%, var(--surface-1))`,
        boxShadow: `inset 0 0 0 1px color-mix(in oklch, ${tint} 22%, transparent)`,
      }}
      className={cx('inline-grid shrink-0 place-items-center leading-none select-none', EMOJI[size], className)}
    >
      {emoji}
    </span>
  )
}

export type Actor =
  | { kind: 'person'; id: string; name: string }
  | { kind: 'agent'; id: string; name: string; emoji: string; hue?: Hue | undefined }

/** Whoever did it or has it. */
export function Avatar(props: {
  actor: Actor
  size?: AvatarSize
  decorative?: boolean
  className?: string | undefined
}) {
  const { actor, size = 'sm', decorative = false, className } = props
  return actor.kind === 'person' ? (
    <PersonAvatar name={actor.name} id={actor.id} {...{ size, decorative, className }} />
  ) : (
    <AgentAvatar name={actor.name} emoji={actor.emoji} hue={actor.hue} {...{ size, decorative, className }} />
  )
}

/** A few, overlapping, with "+3" for the rest. */
export function AvatarStack({
  actors,
  max = 4,
  size = 'sm',
}: {
  actors: readonly Actor[]
  max?: number
  size?: AvatarSize
}) {
  const shown = actors.slice(0, max)
  return (
    <span className="inline-flex items-center -space-x-1">
      {shown.map((actor) => (
        <Avatar key={actor.id} actor={actor} size={size} className="ring-2 ring-surface-1" />
      ))}
      {actors.length > max && <span className="nums pl-2 text-xs text-text-3">+{actors.length - max}</span>}
    </span>
  )
}
