/** A caller who sends without end, and how much of it was taken. */
import { connect, type Socket } from 'node:net';

/** What the kernel may hold on both ends of a loopback connection, besides what the service reads. */
export const SOCKET_BUFFERS_BYTES = 16 * 1024 * 1024;

export interface Flood {
  /** The first bytes of the body. */
  readonly begin?: Buffer;
  /** Of the body; then it waits. */
  readonly maxSentBytes?: number;
}

/**
 * Posts the headers, then 64 KB pieces for as long as the other side takes them, up to 256 MB; what came back, and how much went.
 * The answer can be lost to a caller who still has something to send when the other side closes.
 */
export async function floodBody(
  origin: string,
  path: string,
  headers: readonly string[],
  { begin = Buffer.alloc(0), maxSentBytes = 256 * 1024 * 1024 }: Flood = {},
): Promise<{ text: string; takenBytes: number }> {
  const socket: Socket = connect(Number(new URL(origin).port), '127.0.0.1');
  let text = '';
  let isOver = false;
  socket.on('data', (part) => {
    text += String(part);
  });
  const over = new Promise<void>((resolve) => {
    const end = (): void => {
      isOver = true;
      resolve();
    };
    socket.on('error', end);
    socket.on('end', end);
    socket.on('close', end);
  });
  const isChunked = headers.some((header) => header.startsWith('Transfer-Encoding'));
  const framed = (piece: Buffer): Buffer =>
    isChunked
      ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
      : piece;
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${headers.join('\r\n')}\r\n\r\n`);
  if (begin.length > 0) socket.write(framed(begin));
  const piece = framed(Buffer.alloc(64 * 1024, ' '));
  let sentBytes = begin.length;
  while (!isOver && sentBytes < maxSentBytes) {
    sentBytes += piece.length;
    if (!socket.write(piece))
      await Promise.race([over, new Promise((resolve) => socket.once('drain', resolve))]);
  }
  await over;
  const takenBytes = socket.bytesWritten;
  socket.destroy();
  return { text, takenBytes };
}
