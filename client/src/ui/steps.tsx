import type { ReactNode } from 'react'
import { cx, inkColor, type Meaning } from './cx.ts'
import { Progress } from './progress.tsx'
import { duration } from './relative-time.tsx'
import { Spinner } from './spinner.tsx'
import { type Shape, StatusShape } from './status.tsx'

export type StepState = 'todo' | 'doing' | 'done' | 'failed' | 'skipped' | 'cancelled'

export type Step = {
  id: string
  label: string
  state: StepState
  /** What it does now, or the reason it failed or was skipped. */
  detail?: ReactNode
  /** How long it took, ms. */
  tookMs?: number | undefined
  progress?: { value: number; max: number; text?: string | undefined } | undefined
  /** Retry, open the log. */
  action?: ReactNode
}

const MARK: Record<Exclude<StepState, 'doing'>, { shape: Shape; meaning: Meaning; word: string }> = {
  todo: { shape: 'ring', meaning: 'neutral', word: 'to do' },
  done: { shape: 'check', meaning: 'good', word: 'done' },
  failed: { shape: 'cross', meaning: 'danger', word: 'failed' },
  skipped: { shape: 'slash', meaning: 'neutral', word: 'skipped' },
  cancelled: { shape: 'slash', meaning: 'warning', word: 'cancelled' },
}

/** A long job as its steps: provisioning, an import, an update. */
export function Steps({
  label,
  steps,
  className,
}: {
  label: string
  steps: readonly Step[]
  className?: string | undefined
}) {
  return (
    <ol aria-label={label} className={className}>
      {steps.map((step, i) => {
        const mark = step.state === 'doing' ? null : MARK[step.state]
        return (
          <li key={step.id} aria-current={mark ? undefined : 'step'} className="flex gap-3">
            <div className="flex w-3.5 flex-col items-center pt-[3px]" aria-hidden="true">
              {mark ? <StatusShape shape={mark.shape} meaning={mark.meaning} /> : <Spinner className="text-busy" />}
              {i < steps.length - 1 && <span className="mt-1 -mb-0.5 w-px flex-1 bg-line-strong" />}
            </div>
            <div className={cx('min-w-0 flex-1', i < steps.length - 1 && 'pb-3')}>
              <div className="flex items-baseline gap-2">
                <span
                  className={cx(
                    'min-w-0 flex-1',
                    step.state === 'doing' && 'font-medium',
                    (step.state === 'todo' || step.state === 'skipped') && 'text-text-3',
                  )}
                >
                  {step.label}
                  <span className="sr-only">, {mark?.word ?? 'running'}</span>
                </span>
                {step.tookMs !== undefined && (
                  <span className="nums shrink-0 text-xs text-text-3">{duration(step.tookMs)}</span>
                )}
              </div>
              {step.detail && (
                <div className={cx('text-xs', step.state === 'failed' ? inkColor.danger : 'text-text-3')}>
                  {step.detail}
                </div>
              )}
              {step.progress && (
                <Progress
                  className="mt-1.5 max-w-80"
                  label={step.label}
                  hideLabel
                  value={step.progress.value}
                  max={step.progress.max}
                  detail={step.progress.text}
                />
              )}
              {step.action && <div className="mt-1.5">{step.action}</div>}
            </div>
          </li>
        )
      })}
    </ol>
  )
}
