/** Small numbers that look random and are the same for the same input: the sandbox answers alike each time. */

/** FNV-1a over UTF-16 code units, 32 bits. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  // Mixed once more, since near texts otherwise differ in few bits.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** Between 0 (included) and 1 (excluded). */
export function fractionOf(text: string): number {
  return hashOf(text) / 2 ** 32;
}
