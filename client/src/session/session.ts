/** Who is signed in, as screens see it. */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Principal } from '@hq/shared/sync/protocol.ts'
import { createContext, useContext } from 'react'

export type Person = Extract<Principal, { kind: 'person' }>

export interface Session {
  readonly principal: Person
  /** The workspace's row, once it has been synced. */
  readonly workspace: Row<'workspace'> | undefined
  /** The person's own row (name, avatar colour, time zone), once it has been synced. */
  readonly person: Row<'people'> | undefined
  /** At least an admin. */
  readonly isAdmin: boolean
  /** Everybody but viewers. */
  readonly canWrite: boolean
  /** Begins signing out (asks first when changes wait). */
  readonly signOut: () => void
}

export const SessionContext = createContext<Session | undefined>(undefined)

/** The session; only below `routes/_app.tsx`. */
export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('useSession is for screens behind the sign-in (routes below _app).')
  return session
}
