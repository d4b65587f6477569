/** What rows are called, for lists that name rows of many tables, kept up to date. */
import type { NameOf } from '@hq/shared/domain/change-words.ts'
import { type NameRow, nameOfRows, namesStatement, type Wanted } from '@hq/shared/domain/row-names.ts'
import { useMemo } from 'react'
import { useRows } from '../../replica/hooks.ts'

export { referenceOf, type Wanted, want } from '@hq/shared/domain/row-names.ts'

export function useNames(wanted: Wanted): NameOf {
  const statement = namesStatement(wanted)
  const { rows } = useRows<NameRow>(statement?.sql ?? 'select 1 where false', statement?.params, {
    tables: statement?.tables ?? [],
    enabled: statement !== undefined,
  })
  return useMemo(() => nameOfRows(rows), [rows])
}
