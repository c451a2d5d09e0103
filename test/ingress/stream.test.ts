/** The writing of a stream by itself: what was there before anybody read, and what comes while nobody takes it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { afterEach, describe, it } from 'mocha';
import type { FinishedFrame } from '../../core/relay/frames.ts';
import type { Context } from '../../ingress/context.ts';
import type { Pending } from '../../ingress/pending.ts';
import { streamEvents } from '../../ingress/stream.ts';

const FINISHED: FinishedFrame = {
  kind: 'finished',
  id: '1',
  run: 1,
  state: 'succeeded',
  costAp: 1,
  eventCount: 2,
};

describe('the stream to a caller', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  /** Serves one pending request; resolves with the address. */
  async function serve(pending: Pending): Promise<string> {
    server = createServer((req, res) => {
      const ctx = { req, res, state: { language: 'en' } } as unknown as Context;
      const config = { streamCommentSeconds: 60, streamWindowBytes: 262_144, slowReaderSeconds: 30 };
      void streamEvents(ctx, config, pending).catch((error: Error) => res.end(`error: ${error.message}`));
    });
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  function makePending(
    events: string[],
    finished: Promise<FinishedFrame>,
  ): Pending & { readonly acknowledged: number[] } {
    const acknowledged: number[] = [];
    return {
      id: '1',
      finished,
      isForked: false,
      hasBegun: false,
      onEvents: undefined,
      acknowledged,
      takeEvents: () => events.splice(0),
      acknowledge: (bytes) => acknowledged.push(bytes),
      abort() {},
      leave() {},
      forget() {},
    };
  }

  it('ends although everything was there, and finished, before it began', async () => {
    const url = await serve(makePending(['1', '2'], Promise.resolve(FINISHED)));
    expect(await (await fetch(url)).text()).to.equal('data: 1\n\ndata: 2\n\ndata: [DONE]\n\n');
  });

  it('ends although nothing ever came of it', async () => {
    const url = await serve(makePending([], Promise.resolve({ ...FINISHED, eventCount: 0 })));
    expect(await (await fetch(url)).text()).to.equal('data: [DONE]\n\n');
  });

  it('is refused with its status when it failed before its first event', async () => {
    const url = await serve(
      makePending([], Promise.resolve({ ...FINISHED, state: 'failed', errorCode: 'content_moderated' })),
    );
    expect(await (await fetch(url)).text()).to.equal('error: content_moderated');
  });

  it('acknowledges what was taken, 64 KB and more at a time, counted as the worker counts', async () => {
    const events = Array.from({ length: 10 }, () => 'x'.repeat(30_000));
    const all = events.length * (30_000 + 8);
    const pending = makePending([], new Promise(() => {}));
    const finished = Promise.withResolvers<FinishedFrame>();
    Object.assign(pending, { finished: finished.promise, takeEvents: () => events.splice(0, 1) });
    const url = await serve(pending);
    const response = await fetch(url);
    finished.resolve(FINISHED);
    expect((await response.text()).length).to.equal(all + 'data: [DONE]\n\n'.length);
    expect(pending.acknowledged).to.deep.equal([3, 6, 9].map((count) => count * 30_008));
  });
});
