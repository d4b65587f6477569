import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { refusalOf } from './addresses.ts'

/** What the host of an address becomes when it is parsed as browsers and Node do. */
const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '')

describe('addresses', () => {
  test.each([
    // Loopback and this machine
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://127.0.0.1./',
    'http://%31%32%37.0.0.1/',
    'http://１２７.0.0.1/',
    'http://①②⑦.0.0.1/',
    'http://0/',
    'http://0.0.0.0/',
    'http://[::1]/',
    'http://[::]/',
    'http://[0:0:0:0:0:0:0:1]/',
    // The same, carried by IPv6
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[::ffff:0:127.0.0.1]/',
    'http://[::127.0.0.1]/',
    'http://[64:ff9b::127.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[2002:0a00:0001::1]/',
    'http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/',
    'http://[64:ff9b:1::1]/',
    // Private and shared networks
    'http://10.0.0.1/',
    'http://172.16.0.1/',
    'http://172.31.255.255/',
    'http://192.168.1.1/',
    'http://100.64.0.1/',
    'http://[fc00::1]/',
    'http://[fd12:3456::1]/',
    'http://[fec0::1]/',
    // Metadata services, link-local
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://0251.0376.0251.0376/',
    'http://[::ffff:169.254.169.254]/',
    'http://[fd00:ec2::254]/',
    'http://[fe80::1]/',
    'http://100.100.100.200/',
    'http://192.0.0.192/',
    // Nobody's
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://192.0.2.1/',
    'http://198.18.0.1/',
    'http://203.0.113.9/',
    'http://[ff02::1]/',
    'http://[2001:db8::1]/',
    'http://[100::1]/',
    'http://[5f00::1]/',
  ])('N1, N2: %s is refused', (url) => {
    const host = hostOf(url)
    expect(isIP(host), `${host} is an address`).not.toBe(0)
    expect(refusalOf(host)).toBeTypeOf('string')
  })

  test.each([
    '8.8.8.8',
    '1.1.1.1',
    '93.184.215.14',
    '172.32.0.1',
    '100.128.0.1',
    '2606:4700:4700::1111',
    '2a00:1450:4001:80e::200e',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::1',
  ])('N1: %s is public', (address) => expect(refusalOf(address)).toBeUndefined())

  test('N2: an IPv6 address that carries an IPv4 address is as good as that, in every way of writing it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
        const high = ((a << 8) | b).toString(16)
        const low = ((c << 8) | d).toString(16)
        const said = refusalOf(address)
        for (const carrier of [
          `::ffff:${address}`,
          `::ffff:${high}:${low}`,
          `64:ff9b::${address}`,
          `2002:${high}:${low}::9`,
        ])
          expect([carrier, refusalOf(carrier)]).toEqual([carrier, said])
      }),
    )
  })

  test('N3: names, nonsense and zones', () => {
    for (const text of ['localhost', '', 'example.org', '1.2.3', '1.2.3.4.5', ':::', 'fe80::1%eth0', '::1%lo'])
      expect([text, refusalOf(text)]).toEqual([text, expect.any(String)])
  })
})
