import {
  createCipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
} from 'node:crypto'
import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from '@hpke/core'
import { describe, expect, it } from 'vitest'
import { MAX_SECRET_BYTES, open, type SealedPlace, seal, sealingSuite } from './sealing.ts'
import { secretNameProblem } from './secret-names.ts'

const hex = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text, 'hex'))

const pair = (): { publicKey: string; privateKey: string } => {
  const { x = '', d = '' } = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' })
  return { publicKey: x, privateKey: d }
}
const place: SealedPlace = {
  tenantId: 'a',
  gatewayId: 'b',
  secretId: 'c',
  version: 3,
  use: ['GITHUB_TOKEN', 'agent', 'user'],
}

describe('the suite', () => {
  it('opens RFC 9180’s first vector (A.1.1: X25519, HKDF-SHA256, base mode)', async () => {
    const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() })
    const recipientKey = await suite.kem.deserializePrivateKey(
      hex('4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8'),
    )
    const plain = await suite.open(
      {
        recipientKey,
        enc: hex('37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431').buffer,
        info: hex('4f6465206f6e2061204772656369616e2055726e').buffer,
      },
      hex('f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a').buffer,
      hex('436f756e742d30').buffer,
    )
    expect(Buffer.from(plain).toString()).toBe('Beauty is truth, truth beauty')
  })

  it('opens, with AES-256-GCM, what RFC 9180 written out over node:crypto seals', async () => {
    const recipient = generateKeyPairSync('x25519')
    const jwk = recipient.privateKey.export({ format: 'jwk' })
    const info = Buffer.from('the info')
    const aad = Buffer.from('the aad')
    const { enc, ct } = sealByHand(Buffer.from(jwk.x ?? '', 'base64url'), info, aad, Buffer.from('by hand'))
    const suite = sealingSuite()
    const recipientKey = await suite.kem.deserializePrivateKey(Uint8Array.from(Buffer.from(jwk.d ?? '', 'base64url')))
    const plain = await suite.open(
      { recipientKey, enc: Uint8Array.from(enc).buffer, info: Uint8Array.from(info).buffer },
      Uint8Array.from(ct).buffer,
      Uint8Array.from(aad).buffer,
    )
    expect(Buffer.from(plain).toString()).toBe('by hand')
  })
})

describe('a sealed value', () => {
  it('opens with the private key, for its place', async () => {
    const { publicKey, privateKey } = pair()
    for (const value of ['', 'x', 'ä🦊\n"quoted"', 'y'.repeat(MAX_SECRET_BYTES)])
      expect(await open(privateKey, place, await seal(publicKey, place, value))).toEqual({ ok: true, value })
  })

  it('opens nowhere else: no other key, workspace, gateway, secret, version, name, agent or category', async () => {
    const { publicKey, privateKey } = pair()
    const sealed = await seal(publicKey, place, 'secret')
    expect(await open(pair().privateKey, place, sealed)).toEqual({ ok: false })
    const others: SealedPlace[] = [
      { ...place, tenantId: 'z' },
      { ...place, gatewayId: 'z' },
      { ...place, secretId: 'z' },
      { ...place, version: 4 },
      { ...place, use: ['PATH', 'agent', 'user'] },
      { ...place, use: ['GITHUB_TOKEN', 'other', 'user'] },
      { ...place, use: ['GITHUB_TOKEN', 'agentuser', ''] },
      { ...place, tenantId: 'ab', gatewayId: '' },
    ]
    for (const other of others) expect(await open(privateKey, other, sealed)).toEqual({ ok: false })
  })

  it('changed, cut or empty, does not open, and does not throw', async () => {
    const { publicKey, privateKey } = pair()
    const sealed = await seal(publicKey, place, 'secret')
    const last = sealed.at(-3) === 'A' ? 'B' : 'A'
    const damaged = `${sealed.slice(0, -3)}${last}${sealed.slice(-2)}`
    for (const other of [damaged, sealed.slice(0, -10), '', 'hq.v1.', 'hq.v1.!!', `hq.v2.${sealed.slice(6)}`])
      expect(await open(privateKey, place, other)).toEqual({ ok: false })
  })

  it('looks different each time, and tells its length only by 64 bytes', async () => {
    const { publicKey } = pair()
    const [short, again, longer] = await Promise.all(['a', 'a', 'a'.repeat(60)].map((v) => seal(publicKey, place, v)))
    expect(short).not.toBe(again)
    expect(short?.length).toBe(longer?.length)
  })

  it('is refused for what is no key, and for what is too long', async () => {
    await expect(seal('nonsense', place, 'x')).rejects.toThrow()
    await expect(seal(pair().publicKey, place, 'y'.repeat(MAX_SECRET_BYTES + 1))).rejects.toThrow(/at most 32 KiB/)
  })
})

describe('the name of a secret', () => {
  it('may be an ordinary variable', () => {
    for (const key of ['GITHUB_TOKEN', 'A', 'OPENAI_API_KEY', 'S3_KEY_2', 'DATABASE_URL'])
      expect(secretNameProblem(key)).toBeUndefined()
  })
  it.each(
    'PATH LD_PRELOAD LD_LIBRARY_PATH NODE_OPTIONS DYLD_INSERT_LIBRARIES BASH_ENV ENV IFS GIT_SSH_COMMAND PYTHONPATH PERL5OPT HOME HQ_SERVER_URL HTTPS_PROXY'.split(
      ' ',
    ),
  )('%s is refused, because it changes how programs run', (key) => {
    expect(secretNameProblem(key)).toMatch(/changes how programs/)
  })
  it.each(['', 'lower', '1A', 'A B', 'A=B', 'A\nB', 'Ä', '_A', 'A'.repeat(121)])('“%s” is refused', (key) => {
    expect(secretNameProblem(key)).toEqual(expect.any(String))
  })
})

/** RFC 9180, sections 4.1 and 5.1, for this one suite. */
function sealByHand(recipient: Buffer, info: Buffer, aad: Buffer, plain: Buffer): { enc: Buffer; ct: Buffer } {
  const sender = generateKeyPairSync('x25519')
  const enc = Buffer.from(sender.privateKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const publicKey = createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: recipient.toString('base64url') },
    format: 'jwk',
  })
  const privateKey = createPrivateKey(sender.privateKey.export({ format: 'pem', type: 'pkcs8' }))
  const dh = diffieHellman({ privateKey, publicKey })
  const kem = Buffer.concat([Buffer.from('KEM'), Buffer.from([0, 0x20])])
  const shared = expand(
    kem,
    extract(kem, Buffer.alloc(0), 'eae_prk', dh),
    'shared_secret',
    Buffer.concat([enc, recipient]),
    32,
  )
  const suite = Buffer.concat([Buffer.from('HPKE'), Buffer.from([0, 0x20, 0, 1, 0, 2])])
  const none = Buffer.alloc(0)
  const context = Buffer.concat([
    Buffer.from([0]),
    extract(suite, none, 'psk_id_hash', none),
    extract(suite, none, 'info_hash', info),
  ])
  const secret = extract(suite, shared, 'secret', none)
  const cipher = createCipheriv(
    'aes-256-gcm',
    expand(suite, secret, 'key', context, 32),
    expand(suite, secret, 'base_nonce', context, 12),
  )
  cipher.setAAD(aad)
  return { enc, ct: Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]) }
}

const extract = (suite: Buffer, salt: Buffer, label: string, ikm: Buffer): Buffer =>
  createHmac('sha256', salt)
    .update(Buffer.concat([Buffer.from('HPKE-v1'), suite, Buffer.from(label), ikm]))
    .digest()

function expand(suite: Buffer, prk: Buffer, label: string, info: Buffer, length: number): Buffer {
  const labelled = Buffer.concat([Buffer.from([0, length]), Buffer.from('HPKE-v1'), suite, Buffer.from(label), info])
  return createHmac('sha256', prk)
    .update(labelled)
    .update(Buffer.from([1]))
    .digest()
    .subarray(0, length)
}
