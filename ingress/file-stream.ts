/**
 * A file to the caller while it is made: the events of the stream carry its bytes. They are not stored; what is lost of them, or
 * what a slow reader did not get in time, is read from the finished file, from where the caller is. So a caller gets all of it
 * once, and its last bytes only when the request is on the books.
 */
import { type AssetName, assetKey } from '../core/assets/keys.ts';
import type { AudioEvent } from '../core/speech.ts';
import type { Context } from './context.ts';
import type { Pending } from './pending.ts';
import { errorOf } from './results.ts';
import type { Services } from './services.ts';
import { drained, type EventWriter, FRAMING_BYTES, readEvents } from './stream.ts';

export interface FileShape {
  /** Of the response; they go out with the first byte. */
  readonly headers: Readonly<Record<string, string>>;
  /** The finished file, by what is stored of the request. */
  fileOf(stored: string): AssetName & { readonly bytes: number };
}

type Streaming = Pick<Services, 'config' | 'files' | 'logger'>;

/**
 * Nothing is sent before the first byte of the file, so a request that fails at once is answered with its proper status, and one
 * that is `late` can be told where to collect; after that only the end of the connection tells of a failure.
 */
export async function streamFile(
  ctx: Context,
  services: Streaming,
  pending: Pending,
  shape: FileShape,
): Promise<'answered' | 'late'> {
  const { config, logger } = services;
  const { res } = ctx;
  const writer = makeFileWriter(ctx, services, shape);
  const lateMs = config.edgeWaitSeconds * 1000;
  const finished = await readEvents(ctx, config, pending, writer, {
    stopWhenCallerLeaves: false,
    lateMs,
  });
  if (finished === 'late') return 'late';
  if (finished === 'left') return 'answered';
  if (finished.state !== 'succeeded' || finished.body === undefined) {
    if (!writer.isOpen) throw errorOf(finished);
    res.destroy(); // half of a file is out: only the end of the connection can tell
    return 'answered';
  }
  const file = shape.fileOf(finished.body);
  if (pending.isForked || writer.fileBytes > file.bytes) {
    res.destroy();
    return 'answered';
  }
  try {
    if (writer.fileBytes < file.bytes) await writer.readOn(file);
    res.end();
  } catch (error) {
    if (res.destroyed) return 'answered';
    logger.error({ err: error, requestId: pending.id }, 'a finished file could not be read to its end');
    if (!writer.isOpen) throw error;
    res.destroy();
  }
  return 'answered';
}

interface FileWriter extends EventWriter {
  /** Of the file, so far. */
  readonly fileBytes: number;
  /** The rest of it from the store. */
  readOn(file: AssetName): Promise<void>;
}

function makeFileWriter(ctx: Context, { config, files }: Streaming, { headers }: FileShape): FileWriter {
  const { res } = ctx;
  const patienceMs = config.slowReaderSeconds * 1000;
  let isOpen = false;
  let sentBytes = 0;
  let fileBytes = 0;

  async function send(bytes: Buffer): Promise<void> {
    if (!isOpen) {
      ctx.respond = false; // from here on the response is written by hand
      res.writeHead(200, headers);
      isOpen = true;
    }
    fileBytes += bytes.length;
    if (!res.write(bytes)) await drained(res, patienceMs);
  }

  return {
    get isOpen() {
      return isOpen;
    },
    get sentBytes() {
      return sentBytes;
    },
    get fileBytes() {
      return fileBytes;
    },
    async write(events) {
      for (const event of events) {
        const { offset, data } = JSON.parse(event) as AudioEvent;
        if (offset !== fileBytes) throw new Error('a stretch of a file came out of turn');
        await send(Buffer.from(data, 'base64'));
        sentBytes += Buffer.byteLength(event) + FRAMING_BYTES;
      }
    },
    async readOn(file) {
      const left = new AbortController();
      const leave = (): void => left.abort();
      res.once('close', leave);
      if (res.destroyed) leave();
      try {
        const rest = await files.store.open(assetKey(file), { start: fileBytes, signal: left.signal });
        for await (const bytes of rest) await send(bytes as Buffer);
      } finally {
        res.off('close', leave);
      }
    },
  };
}
