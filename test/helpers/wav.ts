/** WAV files for tests: 16-bit samples, one channel, 24 kHz, a quiet tone; `claimedBytes`: what the header says of its samples. */
const RATE = 24_000;

export function makeWav(durationMs: number, claimedBytes?: number): Buffer {
  const samples = Math.round((durationMs * RATE) / 1000);
  const data = Buffer.alloc(samples * 2);
  for (let index = 0; index < samples; index += 1) {
    data.writeInt16LE(Math.round(3000 * Math.sin((index * 2 * Math.PI * 440) / RATE)), index * 2);
  }
  const header = Buffer.alloc(44);
  const claimed = claimedBytes ?? data.length;
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(claimed + 36, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(RATE, 24);
  header.writeUInt32LE(RATE * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(claimed, 40);
  return Buffer.concat([header, data]);
}
