/** A request that is waited for, frame by frame: what becomes of a stream that is a file when frames are lost or its run is another. */
import { expect } from 'chai';
import { beforeEach, describe, it } from 'mocha';
import type { EventsFrame, FinishedFrame, Frame } from '../../core/relay/frames.ts';
import { PendingRequest } from '../../ingress/pending.ts';

const ID = '01900000-0000-7000-8000-000000000000';
const BODY = '{"asset":"a"}';

describe('a file that is waited for', () => {
  let sent: Frame[];
  let isKnown: boolean;
  let pending: PendingRequest;
  let finished: FinishedFrame | undefined;

  beforeEach(() => {
    sent = [];
    isKnown = true;
    finished = undefined;
    pending = new PendingRequest(
      ID,
      (_channel, frame) => sent.push(frame),
      () => {
        isKnown = false;
      },
    );
    void pending.finished.then((frame) => {
      finished = frame;
    });
  });

  const events = (first: number, texts: string[], run = 1, workerId = 'w1'): EventsFrame => ({
    kind: 'events',
    id: ID,
    workerId,
    run,
    first,
    events: texts,
  });
  const end = (eventCount: number, changes: Partial<FinishedFrame> = {}): FinishedFrame => ({
    kind: 'finished',
    id: ID,
    workerId: 'w1',
    run: 1,
    state: 'succeeded',
    costAp: 1,
    eventCount,
    body: BODY,
    ...changes,
  });
  const heard = async (...frames: (EventsFrame | FinishedFrame)[]) => {
    for (const frame of frames) pending.hear(frame);
    await Promise.resolve();
    return {
      events: pending.takeEvents(),
      isFinished: finished?.body === BODY,
      isForked: pending.isForked,
      isKnown,
    };
  };

  it('gives all its events, and the last only with its end', async () => {
    expect(await heard(events(0, ['a', 'b']), end(3, { events: ['c'] }))).to.deep.equal({
      events: ['a', 'b', 'c'],
      isFinished: true,
      isForked: false,
      isKnown: false,
    });
  });

  it('gives what came before a hole, and its end: the rest is in the file', async () => {
    const after = await heard(events(0, ['a']), events(2, ['c']), end(4, { events: ['d'] }));
    expect(after).to.deep.equal({ events: ['a'], isFinished: true, isForked: false, isKnown: false });
  });

  it('gives nothing but its end when all else was lost', async () => {
    const after = await heard(end(4, { events: ['d'] }));
    expect(after).to.deep.equal({ events: [], isFinished: true, isForked: false, isKnown: false });
  });

  it('is looked up when its end names no file', async () => {
    const { body: _body, ...nameless } = end(2);
    const after = await heard(events(0, ['a']), nameless);
    expect(after).to.deep.equal({ events: ['a'], isFinished: false, isForked: false, isKnown: true });
    expect(pending.isBroken).to.equal(true);
    pending.recover({
      id: ID,
      state: 'succeeded',
      costAp: 1,
      errorCode: null,
      errorDetails: null,
      result: { kind: 'json', body: BODY },
    });
    expect(await heard()).to.include({ isFinished: true, isForked: false });
  });

  it('that is made anew cannot be joined with what was passed on', async () => {
    const after = await heard(
      events(0, ['a']),
      events(0, ['A'], 2, 'w2'),
      end(1, { run: 2, workerId: 'w2' }),
    );
    expect(after).to.deep.include({ events: ['a'], isForked: true });
    expect(pending.isToBeVoided).to.equal(true);
  });

  it('that is made anew before anything was passed on is as good', async () => {
    const after = await heard(events(0, ['A'], 2, 'w2'), end(2, { run: 2, workerId: 'w2', events: ['B'] }));
    expect(after).to.deep.equal({ events: ['A', 'B'], isFinished: true, isForked: false, isKnown: false });
  });

  it('whose caller left is waited for by nobody, and known until it has ended', async () => {
    pending.hear(events(0, ['a']));
    pending.leave();
    pending.forget();
    expect(isKnown).to.equal(true);
    const after = await heard(events(1, ['b']));
    expect(after.events).to.deep.equal([]);
    // said when the caller left, and again with each frame
    const taken = sent.filter((frame) => frame.kind === 'taken').map(({ bytes }) => bytes);
    expect(taken).to.deep.equal([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
    expect((await heard(end(3, { events: ['c'] }))).isKnown).to.equal(false);
  });
});
