/**
 * Preloaded into Portkey's process (`node --import`): it listens on every interface and has no setting for it,
 * so each `listen(port)` is given the loopback address here. Nothing else of it is changed.
 */
import { Server } from 'node:net';

type Listen = (this: Server, ...parameters: unknown[]) => Server;

const listen = Server.prototype.listen as unknown as Listen;

function listenOnLoopback(this: Server, port: unknown, ...rest: unknown[]): Server {
  const callback = rest.find((value) => typeof value === 'function');
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, callback);
}

Server.prototype.listen = listenOnLoopback as unknown as typeof Server.prototype.listen;
