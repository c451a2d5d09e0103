/** Who a caller without a key is taken for: the network its address is of. Nothing here is stored. */
import { isIPv6 } from 'node:net';

/** Of an IPv6 address its first half, which is what one place is given; an IPv4 address as it is. */
export function networkOf(address: string): string {
  const [bare = ''] = address.split('%');
  if (!isIPv6(bare)) return bare;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare);
  if (mapped?.[1] !== undefined) return mapped[1];
  // the URL parser writes one address always in one way, in groups of hexadecimal digits
  const [head = '', tail] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const last = tail === '' ? [] : tail.split(':');
    groups.push(...Array<string>(8 - groups.length - last.length).fill('0'), ...last);
  }
  return groups.slice(0, 4).join(':');
}
