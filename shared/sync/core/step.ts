/**
 * The form of the pure core: `step(state, event) → (state, effects)`.
 *
 * A step reads no clock, draws no random number and does no IO; what it needs of these comes in the event, what it wants done goes out as effects. The
 * effects of one step are carried out in order by an adapter; when one fails, the adapter says so by an event and carries out none of the rest.
 * The same steps run in production (shape.ts, push.ts, settler.ts) and in the simulation (tests/simulation).
 */
export interface Step<State, Effect> {
  readonly state: State
  readonly effects: readonly Effect[]
}

export const step = <State, Effect>(state: State, ...effects: readonly Effect[]): Step<State, Effect> => ({
  state,
  effects,
})
