/**
 * The app: files of `client/dist/client`, and its shell for every other path.
 *
 *  1. No path leaves the folder; names beginning with a dot are not served.
 *  2. `/assets/*` have hashed names: cached for a year, and a missing one is a 404, never the shell.
 *  3. Everything else is revalidated each time (`no-cache` and an ETag), so that a new version is seen at once.
 *  4. A `.br` or `.gz` beside a file is sent instead, when the browser takes it.
 */
import { readFile, stat } from 'node:fs/promises'
import { extname, join, normalize, sep } from 'node:path'
import { contentSecurityPolicy, inlineScriptHashes } from './security.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
  '.gz': 'application/gzip',
  '.txt': 'text/plain; charset=utf-8',
}

const SHELL = '_shell.html'

const NO_APP = `<!doctype html><meta charset="utf-8"><title>HQ</title>
<p>The server runs, but the app has not been built yet. Run <code>npm run build</code>, or start HQ with <code>npm start</code>.</p>`

export async function serveApp(folder: string, request: Request): Promise<Response> {
  const url = new URL(request.url)
  if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'Only GET.')
  const path = safePath(url.pathname)
  if (path && path !== SHELL) {
    const file = await sendFile(folder, path, request)
    if (file) return file
  }
  if (path === undefined || url.pathname.startsWith('/assets/')) return text(404, 'There is no such file.')
  return sendShell(folder, request)
}

const text = (status: number, message: string): Response =>
  new Response(message, {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  })

/** The path inside the folder, '' for the folder itself, or undefined when it is none of ours. */
function safePath(pathname: string): string | undefined {
  let decoded: string
  try {
    decoded = decodeURIComponent(pathname)
  } catch {
    return undefined // not valid percent-encoding
  }
  if (decoded.includes('\0') || decoded.includes('\\')) return undefined
  const path = normalize(decoded).replace(/^\/+/, '')
  if (path.split(sep).some((part) => part.startsWith('.'))) return undefined
  return path
}

async function sendFile(folder: string, path: string, request: Request): Promise<Response | undefined> {
  const full = join(folder, path)
  const found = await stat(full).catch(() => undefined)
  if (!found?.isFile()) return undefined
  const headers = new Headers({
    'content-type': TYPES[extname(path)] ?? 'application/octet-stream',
    'cache-control': path.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
  })
  const accepted = request.headers.get('accept-encoding') ?? ''
  for (const [encoding, suffix] of [
    ['br', '.br'],
    ['gzip', '.gz'],
  ] as const) {
    if (!new RegExp(`\\b${encoding}\\b`).test(accepted)) continue
    const packed = await stat(full + suffix).catch(() => undefined)
    if (!packed?.isFile()) continue
    headers.set('content-encoding', encoding)
    return send(full + suffix, packed, headers, request)
  }
  return send(full, found, headers, request)
}

async function send(
  file: string,
  { size, mtimeMs }: { size: number; mtimeMs: number },
  headers: Headers,
  request: Request,
): Promise<Response> {
  const etag = `W/"${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}"`
  headers.set('etag', etag)
  if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
  headers.set('content-length', String(size))
  return new Response(request.method === 'HEAD' ? null : await readFile(file), { headers })
}

async function sendShell(folder: string, request: Request): Promise<Response> {
  const html = await readFile(join(folder, SHELL), 'utf8').catch(() => undefined)
  const page = html ?? NO_APP
  return new Response(request.method === 'HEAD' ? null : page, {
    status: html === undefined ? 503 : 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-security-policy': contentSecurityPolicy(
        inlineScriptHashes(page),
        request.headers.get('host') ?? undefined,
      ),
    },
  })
}
