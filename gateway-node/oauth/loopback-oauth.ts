/** For tests: an OAuth provider on the loopback. It checks what a real one checks (PKCE, redirect, client, single use of codes and refresh tokens), and goes wrong on demand. */
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DEFAULT_REDIRECT, type OauthSettings } from '@hq/shared/domain/oauth-settings.ts'

export interface LoopbackOauth {
  readonly settings: OauthSettings & { readonly authorize_url: string; readonly device_url: string }
  /** Forms that were posted, with their path. */
  readonly asked: { readonly path: string; readonly form: Readonly<Record<string, string>> }[]
  /** Everything that nobody but provider and gateway may know. */
  readonly secrets: string[]
  /** What a person's browser does with the link: the address that it ends at. */
  approve(authorizeUrl: string): Promise<string>
  /** What the person does who typed the code. */
  decide(decision: 'approve' | 'deny' | 'expire' | 'slow'): void
  /** The next answer at this path instead of the usual one. */
  next(path: '/token' | '/device', reply: (response: ServerResponse) => void): void
  /** How long tokens are good, in seconds. */
  lifetime: number
  /** Refresh tokens are refused from now on. */
  revoke(): void
  isValid(accessToken: string): boolean
  close(): Promise<void>
}

export async function startLoopbackOauth(): Promise<LoopbackOauth> {
  const secrets: string[] = []
  const fresh = (prefix: string): string => {
    const value = `${prefix}-SECRET-${randomBytes(12).toString('hex')}`
    secrets.push(value)
    return value
  }
  const codes = new Map<string, { challenge: string; redirect: string }>()
  const refreshTokens = new Set<string>()
  const accessTokens = new Set<string>()
  const asked: LoopbackOauth['asked'] = []
  const scripted = new Map<string, ((response: ServerResponse) => void)[]>()
  let device = ''
  let decision: 'pending' | 'approve' | 'deny' | 'expire' | 'slow' = 'pending'

  const json = (response: ServerResponse, status: number, body: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const refuse = (response: ServerResponse, error: string, more = {}): void => json(response, 400, { error, ...more })
  const give = (response: ServerResponse): void => {
    const [access_token, refresh_token] = [fresh('at'), fresh('rt')]
    accessTokens.add(access_token)
    refreshTokens.add(refresh_token)
    json(response, 200, { access_token, refresh_token, token_type: 'Bearer', expires_in: provider.lifetime })
  }

  function authorize(url: URL, response: ServerResponse): unknown {
    const word = (name: string): string => url.searchParams.get(name) ?? ''
    if (word('client_id') !== 'hq-public' || word('code_challenge_method') !== 'S256' || !word('state'))
      return refuse(response, 'invalid_request')
    const code = fresh('code')
    codes.set(code, { challenge: word('code_challenge'), redirect: word('redirect_uri') })
    const back = new URL(word('redirect_uri'))
    back.searchParams.set('code', code)
    back.searchParams.set('state', word('state'))
    return response.writeHead(302, { location: back.href }).end()
  }

  function token(form: Readonly<Record<string, string>>, response: ServerResponse): unknown {
    if (form['client_id'] !== 'hq-public') return refuse(response, 'invalid_client')
    switch (form['grant_type']) {
      case 'authorization_code': {
        const known = codes.get(form['code'] ?? '')
        codes.delete(form['code'] ?? '')
        const challenge = createHash('sha256')
          .update(form['code_verifier'] ?? '')
          .digest('base64url')
        return known?.challenge === challenge && known.redirect === form['redirect_uri']
          ? give(response)
          : refuse(response, 'invalid_grant', { error_description: `The code ${form['code']} is not known` })
      }
      case 'refresh_token':
        // Each is good once.
        return refreshTokens.delete(form['refresh_token'] ?? '')
          ? give(response)
          : refuse(response, 'invalid_grant', { error_description: 'It was revoked' })
      case 'urn:ietf:params:oauth:grant-type:device_code': {
        if (form['device_code'] !== device) return refuse(response, 'invalid_grant')
        if (decision === 'approve') return give(response)
        if (decision === 'deny') return refuse(response, 'access_denied')
        if (decision === 'expire') return refuse(response, 'expired_token')
        if (decision === 'slow') {
          decision = 'pending'
          return refuse(response, 'slow_down')
        }
        return refuse(response, 'authorization_pending')
      }
      default:
        return refuse(response, 'unsupported_grant_type')
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const url = new URL(request.url ?? '/', base)
    if (request.method === 'GET' && url.pathname === '/authorize') return authorize(url, response)
    let text = ''
    for await (const piece of request) text += String(piece)
    const form = Object.fromEntries(new URLSearchParams(text))
    asked.push({ path: url.pathname, form })
    const instead = scripted.get(url.pathname)?.shift()
    if (instead) return instead(response)
    if (url.pathname === '/token') return token(form, response)
    if (url.pathname !== '/device') return refuse(response, 'not_found')
    device = fresh('dc')
    decision = 'pending'
    return json(response, 200, {
      device_code: device,
      user_code: 'WDJB-MJHT',
      verification_uri: `${base}/activate`,
      expires_in: 900,
      interval: 1,
    })
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const provider: LoopbackOauth = {
    settings: {
      authorize_url: `${base}/authorize`,
      device_url: `${base}/device`,
      token_url: `${base}/token`,
      client_id: 'hq-public',
      scope: 'models offline',
      redirect_uri: DEFAULT_REDIRECT,
    },
    asked,
    secrets,
    lifetime: 3_600,
    approve: async (link) => {
      const response = await fetch(link, { redirect: 'manual' })
      return response.headers.get('location') ?? ''
    },
    decide: (next) => {
      decision = next
    },
    next: (path, reply) => scripted.set(path, [...(scripted.get(path) ?? []), reply]),
    revoke: () => refreshTokens.clear(),
    isValid: (accessToken) => accessTokens.has(accessToken),
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
  return provider
}
