/**
 * Sealing a value for one gateway, so that only that gateway opens it: HPKE (RFC 9180) in base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM.
 * Pure over WebCrypto: the same in a browser and in Node; no clock, no IO.
 *
 *  E1 Each seal makes a key pair of its own, so the same value sealed twice looks different.
 *  E2 A sealed value opens only where it was meant to be: workspace, gateway, secret and version are part of the key, what the value is for (`use`) is
 *     authenticated with it. Moved to another row, name, agent or gateway it does not open.
 *  E3 Opening says only that it did not work, never why or what.
 *  E4 The length of a value shows only to a multiple of 64 bytes.
 *
 * What it does not promise: that a gateway knows who sealed (base mode). Who may write a sealed value is the server's business.
 */
import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from '@hpke/core'

/** Where a sealed value belongs (E2). */
export interface SealedPlace {
  readonly tenantId: string
  readonly gatewayId: string
  readonly secretId: string
  readonly version: number
  /** What it is for: the name of the variable, the agent, the category; whatever must not be changed below it. */
  readonly use: readonly string[]
}

export type Opened = { readonly ok: true; readonly value: string } | { readonly ok: false }

/** Longer values are files, not secrets. */
export const MAX_SECRET_BYTES = 32 * 1024
const BLOCK = 64
const ENC_BYTES = 32
const FORMAT = 'hq.v1.'

export const sealingSuite = (): CipherSuite =>
  new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() })

/** Whether this browser can seal at all: WebCrypto exists in secure contexts only (https, or localhost). */
export const canSeal = (): boolean => globalThis.crypto?.subtle !== undefined

/** @param publicKey of the gateway (`gateways.public_key`): 32 bytes, base64url. Throws when it is none, or when the value is too long. */
export async function seal(publicKey: string, place: SealedPlace, value: string): Promise<string> {
  const plain = new TextEncoder().encode(value)
  if (plain.length > MAX_SECRET_BYTES) throw new Error(`A secret has at most ${MAX_SECRET_BYTES / 1024} KiB.`)
  const suite = sealingSuite()
  const recipientPublicKey = await suite.kem.deserializePublicKey(fromBase64url(publicKey))
  const { enc, ct } = await suite.seal({ recipientPublicKey, info: infoOf(place) }, pad(plain), aadOf(place))
  const bytes = new Uint8Array(enc.byteLength + ct.byteLength)
  bytes.set(new Uint8Array(enc))
  bytes.set(new Uint8Array(ct), enc.byteLength)
  return FORMAT + toBase64url(bytes)
}

/** @param privateKey 32 bytes, base64url */
export async function open(privateKey: string, place: SealedPlace, sealed: string): Promise<Opened> {
  try {
    if (!sealed.startsWith(FORMAT)) return { ok: false }
    const bytes = fromBase64url(sealed.slice(FORMAT.length))
    const suite = sealingSuite()
    const recipientKey = await suite.kem.deserializePrivateKey(fromBase64url(privateKey))
    const plain = await suite.open(
      { recipientKey, enc: bytes.slice(0, ENC_BYTES).buffer, info: infoOf(place) },
      bytes.slice(ENC_BYTES).buffer,
      aadOf(place),
    )
    return { ok: true, value: new TextDecoder('utf-8', { fatal: true }).decode(unpad(new Uint8Array(plain))) }
  } catch {
    return { ok: false }
  }
}

/** Each part with its length before it, so that no two lists give the same bytes. */
const bytesOf = (parts: readonly string[]): ArrayBuffer =>
  new TextEncoder().encode(parts.map((part) => `${part.length}:${part}`).join('')).buffer

const infoOf = ({ tenantId, gatewayId, secretId, version }: SealedPlace): ArrayBuffer =>
  bytesOf(['hq/secret/1', tenantId, gatewayId, secretId, String(version)])
const aadOf = ({ use }: SealedPlace): ArrayBuffer => bytesOf(use)

/** Four bytes of length, the value, zeros (E4). */
function pad(plain: Uint8Array): ArrayBuffer {
  const padded = new Uint8Array(Math.ceil((plain.length + 4) / BLOCK) * BLOCK)
  new DataView(padded.buffer).setUint32(0, plain.length)
  padded.set(plain, 4)
  return padded.buffer
}

function unpad(padded: Uint8Array): Uint8Array {
  const length = new DataView(padded.buffer, padded.byteOffset, padded.byteLength).getUint32(0)
  if (length > padded.length - 4) throw new Error('no padding')
  return padded.subarray(4, 4 + length)
}

function toBase64url(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
  if (!/^[\w-]*$/.test(text)) throw new Error('not base64url')
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
