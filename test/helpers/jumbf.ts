/** JUMBF boxes made by hand, good and hostile. */

export function box(type: string, ...contents: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + contents.reduce((sum, { length }) => sum + length, 0));
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, ...contents]);
}

/** A description box: a type such as `c2pa`, and a label. */
export function description(type: string, label: string): Buffer {
  const uuid = Buffer.concat([Buffer.from(type), Buffer.from('00110010800000aa00389b71', 'hex')]);
  return box('jumd', uuid, Buffer.from([3]), Buffer.from(`${label}\0`));
}

/** Behind the description box and whatever else is given. */
export function manifestStore(...contents: readonly Buffer[]): Buffer {
  return box('jumb', description('c2pa', 'c2pa'), ...contents);
}

/** Lengthens (or shortens) the box that begins there. */
export function addToLength(jumbf: Buffer, at: number, bytes: number): void {
  jumbf.writeUInt32BE(jumbf.readUInt32BE(at) + bytes, at);
}
