/**
 * A proxy in front of a test's store that passes everything on, until it is told to stop in the middle of a request: half of
 * that request's body goes through, the rest never does. Whoever sent it can then be ended.
 *
 *   const proxy = await startGateProxy(port);
 *   const held = proxy.holdNext(/^PUT \S*\/image\//);
 *   const { senderPort } = await held;        // its socket, as the system's tables have it
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface HeldRequest {
  /** Port of the sender's end of the connection. */
  readonly senderPort: number;
  /** Resolves when the sender's connection has ended. */
  readonly gone: Promise<void>;
}

export interface GateProxy {
  readonly port: number;
  /** The next request whose first line matches. Others pass. */
  holdNext(line: RegExp): Promise<HeldRequest>;
  close(): Promise<void>;
}

const HEAD_END = '\r\n\r\n';

export async function startGateProxy(targetPort: number): Promise<GateProxy> {
  const sockets = new Set<Socket>();
  let wanted: { line: RegExp; resolve: (held: HeldRequest) => void } | undefined;

  const server = createServer((sender) => {
    const target = connect(targetPort, '127.0.0.1');
    for (const socket of [sender, target]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => {
        sockets.delete(socket);
        sender.destroy();
        target.destroy();
      });
    }
    target.pipe(sender);
    /** Of the request that is held: how much may still pass. */
    let allowed: number | undefined;
    sender.on('data', (part: Buffer) => {
      if (allowed === undefined && wanted?.line.test(part.toString('latin1', 0, 300)) === true) {
        const head = part.indexOf(HEAD_END) + HEAD_END.length;
        const length = /\r\ncontent-length: (\d+)/i.exec(part.toString('latin1', 0, head))?.[1];
        allowed = head + Math.floor(Number(length ?? 0) / 2);
        const gone = once(sender, 'close').then(() => {});
        wanted.resolve({ senderPort: sender.remotePort ?? 0, gone });
        wanted = undefined;
      }
      target.write(allowed === undefined ? part : part.subarray(0, allowed));
      if (allowed !== undefined) allowed = Math.max(0, allowed - part.length);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    holdNext: (line) =>
      new Promise((resolve) => {
        wanted = { line, resolve };
      }),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
