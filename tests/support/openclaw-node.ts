/** A device as OpenClaw's protocol has it (role `node`, Ed25519 identity), for tests of pairing. */
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { WebSocket } from 'ws'

export interface TestNode {
  /** Whether OpenClaw lists it among the paired ones. */
  paired(): Promise<boolean>
  close(): void
}

type Frame = { type: string; event?: string; id?: string; ok?: boolean; payload?: Record<string, unknown> }

export async function connectNode(port: number, token: string): Promise<TestNode> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const id = createHash('sha256').update(raw).digest('hex')
  const client = { id: 'node-host', version: '0.1.0', platform: 'linux', mode: 'node' }
  const node = await connect(port, ({ ts, nonce }) => {
    const text = ['v3', id, client.id, client.mode, 'node', '', ts, token, nonce, client.platform, ''].join('|')
    return {
      client,
      role: 'node',
      scopes: [],
      caps: ['canvas'],
      commands: ['system.notify'],
      auth: { token },
      device: {
        id,
        publicKey: raw.toString('base64url'),
        signedAt: ts,
        nonce,
        signature: sign(null, Buffer.from(text), privateKey).toString('base64url'),
      },
    }
  })
  const operator = await connect(port, () => ({
    client: { id: 'gateway-client', version: '0.1.0', platform: 'linux', mode: 'backend' },
    role: 'operator',
    scopes: ['operator.read', 'operator.pairing', 'operator.admin'],
    caps: [],
    auth: { token },
  }))
  return {
    async paired() {
      const { paired = [] } = (await operator.ask('node.pair.list')) as { paired?: { nodeId?: string }[] }
      return paired.some(({ nodeId }) => nodeId === id)
    },
    close() {
      node.close()
      operator.close()
    },
  }
}

async function connect(port: number, hello: (challenge: { ts: number; nonce: string }) => object) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`)
  const waiting = new Map<string, (frame: Frame) => void>()
  let next = 0
  const ask = (method: string, params: object = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const id = String(++next)
      waiting.set(id, (frame) => (frame.ok ? resolve(frame.payload) : reject(new Error(JSON.stringify(frame)))))
      socket.send(JSON.stringify({ type: 'req', id, method, params }))
    })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data)) as Frame
      if (frame.type === 'res') waiting.get(frame.id ?? '')?.(frame)
      if (frame.event === 'connect.challenge')
        ask('connect', {
          minProtocol: 4,
          maxProtocol: 4,
          ...hello(frame.payload as { ts: number; nonce: string }),
        }).then(() => resolve(), reject)
    })
  })
  return { ask, close: () => socket.terminate() }
}
