/**
 * Which addresses of the internet a request on behalf of an agent may go to: pure.
 *
 *  N1 Allowed are addresses that are globally reachable by the registries of IANA (RFC 6890, its updates). Loopback, private networks, link-local with the
 *     metadata services of clouds, shared and documentation ranges, multicast and what is reserved are refused.
 *  N2 An IPv6 address that carries an IPv4 address (mapped, compatible, NAT64, 6to4) is as good as that IPv4 address.
 *  N3 What is no address is refused: names are resolved before, never guessed at.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** Why nothing is sent there; undefined: it may be. */
export function refusalOf(address: string): string | undefined {
  const plain = address.replace(/%.*$/, '')
  if (isIPv4(plain)) return RANGES_4.find(([list]) => list.check(plain))?.[1]
  if (!isIPv6(plain)) return 'it is no address'
  const groups = groupsOf(plain)
  const carried = carriedBy(groups)
  if (carried !== undefined) return refusalOf(carried)
  const special = RANGES_6.find(([list]) => list.check(plain, 'ipv6'))?.[1]
  if (special) return special
  // Everything that is given out so far begins with 001.
  return ((groups[0] as number) & 0xe000) === 0x2000 ? undefined : 'it is not a public address'
}

const list4 = (...ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [net = '', bits = ''] = range.split('/')
    list.addSubnet(net, Number(bits), 'ipv4')
  }
  return list
}
const list6 = (...ranges: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const range of ranges) {
    const [net = '', bits = ''] = range.split('/')
    list.addSubnet(net, Number(bits), 'ipv6')
  }
  return list
}

const RANGES_4: readonly (readonly [BlockList, string])[] = [
  [list4('127.0.0.0/8', '0.0.0.0/8'), 'it is this machine'],
  [list4('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'), 'it is in a private network'],
  [list4('169.254.0.0/16'), 'it is link-local, where clouds keep their credentials'],
  [list4('224.0.0.0/4', '240.0.0.0/4'), 'it is no address of one machine'],
  [
    list4('192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'),
    'it is reserved',
  ],
]

const RANGES_6: readonly (readonly [BlockList, string])[] = [
  [list6('::/127'), 'it is this machine'],
  [list6('fc00::/7', 'fec0::/10'), 'it is in a private network'],
  [list6('fe80::/10'), 'it is link-local'],
  [list6('ff00::/8'), 'it is no address of one machine'],
  // Teredo, benchmarks, ORCHID, documentation, SRv6; NAT64 of a local network, whose form nobody outside knows.
  [list6('2001::/23', '2001:db8::/32', '3fff::/20', '5f00::/16', '64:ff9b:1::/48', '100::/64'), 'it is reserved'],
]

/** Eight numbers of 16 bits. `address` is valid. */
function groupsOf(address: string): number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  const text = dotted
    ? `${dotted[1]}${hex(Number(dotted[2]), Number(dotted[3]))}:${hex(Number(dotted[4]), Number(dotted[5]))}`
    : address
  const [head = '', tail] = text.split('::')
  const numbers = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  if (tail === undefined) return numbers(head)
  const [before, after] = [numbers(head), numbers(tail)]
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
}

const hex = (high: number, low: number): string => ((high << 8) | low).toString(16)

/** N2. */
function carriedBy(groups: readonly number[]): string | undefined {
  const ipv4 = (high: number | undefined, low: number | undefined): string =>
    [(high ?? 0) >> 8, (high ?? 0) & 255, (low ?? 0) >> 8, (low ?? 0) & 255].join('.')
  const startsWith = (...prefix: readonly number[]): boolean => prefix.every((group, index) => groups[index] === group)
  const last = ipv4(groups[6], groups[7])
  if (startsWith(0, 0, 0, 0, 0, 0xffff) || startsWith(0, 0, 0, 0, 0xffff, 0)) return last
  if (startsWith(0x64, 0xff9b, 0, 0, 0, 0)) return last
  // `::` and `::1` are addresses of their own.
  if (startsWith(0, 0, 0, 0, 0, 0) && !(groups[6] === 0 && (groups[7] as number) <= 1)) return last
  return groups[0] === 0x2002 ? ipv4(groups[1], groups[2]) : undefined
}
