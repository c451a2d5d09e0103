/** Room for large bodies: who waits, who does not, and that room is always given back. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { afterEach, beforeEach, describe, it } from 'mocha';
import getRawBody from 'raw-body';
import { type BodyBudget, type BodyBudgetOptions, makeBodyBudget } from '../../ingress/body-budget.ts';
import type { State } from '../../ingress/context.ts';
import type { Caller } from '../../ingress/key-cache.ts';
import { errors } from '../../ingress/middleware/errors.ts';
import { language } from '../../ingress/middleware/language.ts';
import { requestId } from '../../ingress/middleware/request-id.ts';
import { eventually, makeGate } from '../helpers/service.ts';

const MIB = 1024 * 1024;
const TOTAL = 8 * MIB;
const MAX_BODY = 5 * MIB;

describe('room for large bodies', () => {
  let budget: BodyBudget;
  let server: Server;
  let origin: string;
  let gate: ReturnType<typeof makeGate>;
  /** Lengths of the bodies that were let in, in their order. */
  let letIn: number[];
  const failures: unknown[] = [];
  const logger = { error: (line: unknown) => failures.push(line) } as never;

  async function start(options: Partial<BodyBudgetOptions> = {}): Promise<void> {
    budget = makeBodyBudget({ keyedBytes: TOTAL, keylessBytes: TOTAL, ...options });
    gate = makeGate();
    letIn = [];
    const app = new Koa<State>();
    app.silent = true;
    app.use(requestId);
    app.use(language);
    app.use(errors(logger));
    let count = 0;
    app.use(async (ctx) => {
      count += 1;
      const { 'x-account': accountId = `account-${count}` } = ctx.headers;
      if (accountId !== 'none') ctx.state.caller = { accountId } as Caller;
      await budget.withRoom(ctx, MAX_BODY, async () => {
        letIn.push(Number(ctx.headers['content-length'] ?? -1));
        if (ctx.path === '/fails') throw new Error('on purpose');
        // biome-ignore lint/nursery/useAwaitThenable: without a callback it answers with a promise
        const body = await getRawBody(ctx.req, { limit: MAX_BODY });
        if (ctx.path === '/held') await gate.passed;
        ctx.body = { bytes: body.length };
      });
    });
    server = createServer(app.callback());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  beforeEach(() => start());
  afterEach(async () => {
    gate.open();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    failures.length = 0;
  });

  /** Each of an account of its own, unless it is said whose it is; 'none': without a key. */
  const send = async (
    bytes: number,
    path = '/',
    account?: string,
  ): Promise<{ status: number; json: unknown }> => {
    const headers = account === undefined ? {} : { 'x-account': account };
    const response = await fetch(origin + path, { method: 'POST', body: Buffer.alloc(bytes), headers });
    return { status: response.status, json: await response.json() };
  };
  const allIsFree = () => eventually(() => expect(budget.freeBytes.keyed).to.equal(TOTAL));

  /** Says that a body of `bytes` comes, and sends as much of it as the other side takes. */
  function push(bytes: number, sentBytes = bytes, account?: string): Socket {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n${account === undefined ? '' : `X-Account: ${account}\r\n`}\r\n`,
    );
    if (sentBytes > 0) socket.write(Buffer.alloc(sentBytes));
    return socket;
  }

  it('is given back when the body is done with, also when that fails', async () => {
    expect(await send(4 * MIB)).to.deep.equal({ status: 200, json: { bytes: 4 * MIB } });
    expect((await send(4 * MIB, '/fails')).status).to.equal(500);
    await allIsFree();
  });

  it('is waited for in turn, and small bodies do not wait', async () => {
    const held = send(5 * MIB, '/held');
    await eventually(() => expect(letIn).to.deep.equal([5 * MIB]));
    const second = send(4 * MIB);
    await eventually(() => expect(budget.freeBytes.keyed).to.equal(3 * MIB));
    expect((await send(60 * 1024)).status).to.equal(200);
    const socket = push(2 * MIB);
    // there would be room for the third, but the second came first
    expect((await send(60 * 1024)).status).to.equal(200);
    expect(letIn).to.deep.equal([5 * MIB, 60 * 1024, 60 * 1024]);
    gate.open();
    expect((await held).status).to.equal(200);
    expect((await second).status).to.equal(200);
    await eventually(() => expect(letIn).to.have.members([5 * MIB, 60 * 1024, 60 * 1024, 4 * MIB, 2 * MIB]));
    socket.destroy();
    await allIsFree();
  });

  it('is taken at the limit for a body that does not say its length', async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.alloc(100));
        controller.close();
      },
    });
    const answer = fetch(`${origin}/held`, { method: 'POST', body, duplex: 'half' });
    await eventually(() => expect(budget.freeBytes.keyed).to.equal(TOTAL - MAX_BODY));
    gate.open();
    expect((await answer).status).to.equal(200);
    await allIsFree();
  });

  it('is not given to a body over the limit, which is not read', async () => {
    const answer = await fetch(origin, { method: 'POST', body: Buffer.alloc(MAX_BODY + 1) });
    expect(answer.status).to.equal(400);
    expect(await answer.json()).to.deep.include({ param: 'body', max_bytes: MAX_BODY });
    expect(letIn).to.deep.equal([]);
    await allIsFree();
  });

  it('is not kept for a caller that left while it waited', async () => {
    const held = send(5 * MIB, '/held');
    await eventually(() => expect(letIn).to.have.length(1));
    const socket = push(5 * MIB);
    await eventually(() => expect(socket.bytesWritten).to.be.above(100 * 1024));
    socket.destroy();
    gate.open();
    expect((await held).status).to.equal(200);
    await allIsFree();
    expect(letIn).to.have.length(1);
    expect(failures).to.deep.equal([]);
  });

  it('is not waited for without end', async () => {
    server.close();
    await start({ patienceMs: 100 });
    const held = send(5 * MIB, '/held');
    await eventually(() => expect(letIn).to.have.length(1));
    const response = await fetch(origin, { method: 'POST', body: Buffer.alloc(4 * MIB) });
    expect(response.status).to.equal(503);
    expect(response.headers.get('retry-after')).to.equal('5');
    gate.open();
    expect((await held).status).to.equal(200);
    await allIsFree();
  });

  it('that is less than a body may have lets one in at a time', async () => {
    budget = makeBodyBudget({ keyedBytes: MIB, keylessBytes: MIB });
    expect((await send(4 * MIB)).status).to.equal(200);
    await eventually(() => expect(budget.freeBytes.keyed).to.equal(MIB));
  });

  it('is not kept from callers with a key by those without, who are few bodies at once an address', async () => {
    const silent = Array.from({ length: 4 }, () => push(5 * MIB, 0, 'none'));
    await eventually(() => expect(letIn).to.have.length(1));
    expect((await send(5 * MIB)).status).to.equal(200);
    expect(letIn).to.have.length(2);
    expect(budget.freeBytes).to.deep.equal({ keyed: TOTAL, keyless: 3 * MIB });
    for (const socket of silent) socket.destroy();
    await eventually(() => expect(budget.freeBytes.keyless).to.equal(TOTAL));
  });

  it('is taken up by no account alone', async () => {
    const silent = Array.from({ length: 4 }, () => push(3 * MIB, 0, 'greedy'));
    await eventually(() => expect(letIn).to.have.length(1));
    // theirs that wait for their own share stand in nobody's way
    expect((await send(5 * MIB)).status).to.equal(200);
    expect(letIn).to.have.length(2);
    for (const socket of silent) socket.destroy();
    await allIsFree();
  });

  it('is lost by a body that comes too slowly, with 408, and the caller’s next is let in', async () => {
    server.close();
    await start({ pace: { bytesPerSecond: 1024 * MIB, graceMs: 60, checkEveryMs: 20 } });
    const silent = push(5 * MIB, MIB, 'slow');
    let answer = '';
    silent.on('data', (part) => {
      answer += part.toString();
    });
    await eventually(() => expect(letIn).to.have.length(1));
    const closed = once(silent, 'close');
    expect((await send(4 * MIB, '/', 'slow')).status).to.equal(200);
    await closed;
    expect(answer)
      .to.match(/^HTTP\/1\.1 408 /)
      .and.to.contain('"param":"body","reason":"too_slow"');
    await allIsFree();
    expect(failures).to.deep.equal([]);
  });

  it('is not lost while a body that has come is worked on', async () => {
    server.close();
    await start({ pace: { bytesPerSecond: 1024 * MIB, graceMs: 500, checkEveryMs: 100 } });
    const held = send(5 * MIB, '/held', 'one');
    await eventually(() => expect(letIn).to.have.length(1));
    // cut off after its grace, and that is longer ago than the grace of the one before
    const silent = push(2 * MIB, 0, 'another');
    silent.resume();
    await once(silent, 'close');
    gate.open();
    expect((await held).status).to.equal(200);
  });

  it('leaves what waits unread in its socket', async () => {
    const held = send(5 * MIB, '/held');
    await eventually(() => expect(letIn).to.have.length(1));
    const heard = new Set<Socket>();
    server.on('connection', (socket) => heard.add(socket));
    const sockets = Array.from({ length: 5 }, () => push(5 * MIB));
    await eventually(() => expect([...heard].filter((socket) => socket.bytesRead > 0)).to.have.length(5));
    // what the service reads without being asked is read by now
    expect((await send(1)).status).to.equal(200);
    for (const socket of heard) expect(socket.bytesRead).to.be.below(MIB);
    expect(letIn).to.have.length(2);
    for (const socket of sockets) socket.destroy();
    gate.open();
    expect((await held).status).to.equal(200);
    await allIsFree();
  });
});
