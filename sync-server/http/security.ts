/**
 * What every request and response is held to.
 *
 *  1. Host: a server that listens on loopback answers only to loopback names (no DNS rebinding), or to the name in HQ_PUBLIC_URL.
 *  2. Origin: a request that changes something, or opens a WebSocket, and comes from a browser must come from this very site. Bearer tokens are
 *     exempt: no browser sends them by itself.
 *  3. Responses carry a content security policy; inline scripts run only if they stand in our own shell (by hash).
 */
import { createHash } from 'node:crypto'

export interface Site {
  /** The address listened on. */
  readonly host: string
  readonly publicUrl?: string | undefined
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])
const isLoopbackAddress = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.')

const hostName = (hostHeader: string): string => hostHeader.replace(/:\d+$/, '').toLowerCase()

/** Whether the `Host` header names this server (1). */
export function isOwnHost({ host, publicUrl }: Site, hostHeader: string | undefined): boolean {
  if (!hostHeader) return false
  const name = hostName(hostHeader)
  if (publicUrl && name === new URL(publicUrl).hostname) return true
  if (!isLoopbackAddress(host)) return true
  return LOOPBACK.has(name) || name === host || name.endsWith('.localhost')
}

/** Whether a browser's request comes from our own pages (2). Without any sign of a browser: true. */
export function isOwnOrigin(headers: { get(name: string): string | null | undefined }): boolean {
  const origin = headers.get('origin')
  if (origin) {
    const host = headers.get('host')
    try {
      return new URL(origin).host === host
    } catch {
      return false // 'null', or nonsense: not our page
    }
  }
  const site = headers.get('sec-fetch-site')
  return !site || site === 'same-origin' || site === 'none'
}

export const isUnsafe = (method: string): boolean => !['GET', 'HEAD', 'OPTIONS'].includes(method)

/** CSP sources (`'sha256-…'`) of the inline scripts of an HTML page. */
export function inlineScriptHashes(html: string): string[] {
  const hashes: string[] = []
  for (const [, attributes = '', code = ''] of html.matchAll(/<script\b([^>]*)>([\s\S]*?)<\/script>/gi)) {
    if (/\ssrc\s*=/i.test(attributes) || !code) continue
    hashes.push(`'sha256-${createHash('sha256').update(code).digest('base64')}'`)
  }
  return [...new Set(hashes)]
}

export function contentSecurityPolicy(scriptHashes: readonly string[], hostHeader: string | undefined): string {
  // 'self' covers WebSockets in current browsers; older ones want them named.
  const sockets = hostHeader && /^[\w.:[\]-]+$/.test(hostHeader) ? ` ws://${hostHeader} wss://${hostHeader}` : ''
  return [
    "default-src 'self'",
    `script-src 'self' 'wasm-unsafe-eval' ${scriptHashes.join(' ')}`.trim(),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    `connect-src 'self'${sockets}`,
    "worker-src 'self'",
    "manifest-src 'self'",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')
}

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
}
