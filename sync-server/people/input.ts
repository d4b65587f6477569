/** What people type into setup and invitations, checked; messages are made to be shown beside the field. */

import { ENUMS } from '@hq/shared/schema/enums.ts'
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { MIN_PASSWORD } from './auth.ts'

const name = z
  .string('Please give a name.')
  .trim()
  .min(1, 'Please give a name.')
  .max(100, 'That name is longer than 100 characters.')
const email = z
  .string('Please give an email address.')
  .trim()
  .toLowerCase()
  .pipe(z.email('That is not an email address.').max(200, 'That address is too long.'))
const password = z
  .string('Please choose a password.')
  .min(MIN_PASSWORD, `Please choose a password of at least ${MIN_PASSWORD} characters.`)
  .max(200, 'That password is longer than 200 characters.')
const timezone = z.string().refine(isTimeZone, 'That is not a time zone that this server knows.')

export const setupSchema = z.object({
  name,
  email,
  password,
  workspace_name: z
    .string('Please name the workspace.')
    .trim()
    .min(1, 'Please name the workspace.')
    .max(100, 'That name is too long.'),
  timezone: timezone.default('UTC'),
})
export const inviteSchema = z.object({
  email: email.nullish(),
  role: z.enum(ENUMS.role, 'Please choose a role: owner, admin, member or viewer.').default('member'),
})
export const acceptSchema = z.object({ name, email, password })

function isTimeZone(text: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: text }))
  } catch {
    return false // this is how Intl says that it doesn't know the zone
  }
}

/** Parses `input`, or throws a 400 `invalid` whose detail names the fields. */
export function parse<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input)
  if (result.success) return result.data
  const fields: Record<string, string> = {}
  for (const issue of result.error.issues) fields[issue.path.join('.') || 'body'] ??= issue.message
  throw new HttpError(400, 'invalid', Object.values(fields)[0] ?? 'That is not what was expected here.', {
    detail: { fields },
  })
}
