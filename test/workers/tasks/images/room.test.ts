/** Room for answers full of pictures: an answer stays in its socket until there is some, and has a limited time in it. */
import { expect } from 'chai';
import { after, afterEach, before, describe, it } from 'mocha';
import type { HttpLimits } from '../../../../workers/providers/http-exchange.ts';
import { makeOpenAiProvider } from '../../../../workers/providers/openai/index.ts';
import type { AnswerRoom, ImageCall, ImageProvider } from '../../../../workers/providers/provider.ts';
import { makeRooms } from '../../../../workers/tasks/images/room.ts';
import { type MockUpstream, startMockUpstream } from '../../../helpers/mock-upstream.ts';
import { makePng } from '../../../helpers/pictures.ts';
import { failureOf } from '../../providers/conformance.ts';
import { imageCall } from '../../providers/conformance-images.ts';

const MIB = 1024 * 1024;
/** As a picture of this size is counted: 4 MiB. */
const SIZE = '1024x1024';
/** More than comes in without room. */
const MUCH = ' '.repeat(300_000);
/** A small picture in an answer that needs room. */
const LONG_ANSWER = { images: { revisedPrompt: MUCH } };

describe('room for answers', () => {
  let upstream: MockUpstream;
  const closers: (() => Promise<void>)[] = [];
  before(async () => {
    upstream = await startMockUpstream();
  });
  afterEach(() => upstream.reset());
  after(async () => {
    await Promise.all(closers.map((close) => close()));
    await upstream.close();
  });

  function images(limits: Partial<HttpLimits> = {}): ImageProvider {
    const config = { name: 'mock', kind: 'openai', baseUrl: upstream.baseUrl, credential: undefined };
    const provider = makeOpenAiProvider(config, { closeGraceMs: 0, ...limits });
    closers.push(() => provider.close());
    if (provider.image === undefined) throw new Error('no pictures');
    return provider.image;
  }

  /** A room of one's own that says what is done with it. */
  function watchedRoom(entering: Promise<void> = Promise.resolve()) {
    const asked = Promise.withResolvers<void>();
    const seen: string[] = [];
    const room: AnswerRoom = {
      enter() {
        seen.push('enter');
        asked.resolve();
        return entering;
      },
      leave: () => void seen.push('leave'),
    };
    return { room, seen, asked: asked.promise };
  }

  it('is counted by pixels, entered once, and given back', async () => {
    const rooms = makeRooms(8 * MIB);
    const [one, two, three] = [1, 1, 2].map((count) => rooms.for({ size: SIZE, count }));
    await one?.enter();
    await one?.enter(); // another try of the same request
    await two?.enter();
    let isIn = false;
    const entering = three?.enter().then(() => {
      isIn = true;
    });
    one?.leave();
    await new Promise(setImmediate);
    expect(isIn).to.equal(false);
    two?.leave();
    await entering;
    three?.leave();
  });

  it('is passed on by a request that ended while it waited', async () => {
    const rooms = makeRooms(4 * MIB);
    const [one, two, three] = [1, 1, 1].map((count) => rooms.for({ size: SIZE, count }));
    await one?.enter();
    void two?.enter();
    two?.leave();
    one?.leave();
    await three?.enter();
    three?.leave();
  });

  it('is entered again after it was left', async () => {
    const rooms = makeRooms(4 * MIB);
    const [one, two] = [1, 1].map((count) => rooms.for({ size: SIZE, count }));
    await one?.enter();
    one?.leave();
    await two?.enter();
    let isIn = false;
    const entering = one?.enter().then(() => {
      isIn = true;
    });
    await new Promise(setImmediate);
    expect(isIn).to.equal(false);
    two?.leave();
    await entering;
  });

  it('is waited for before an answer is read, and not by one that has failed', async () => {
    const free = Promise.withResolvers<void>();
    const { room, seen, asked } = watchedRoom(free.promise);
    upstream.programNext({ status: 500, rawBody: MUCH });
    await failureOf(images().produce(imageCall({ room })));
    expect(seen).to.deep.equal([]);

    upstream.programNext(LONG_ANSWER);
    let isRead = false;
    const producing = images()
      .produce(imageCall({ room, size: '300x300' }))
      .then((made) => {
        isRead = true;
        return made;
      });
    await asked;
    await new Promise(setImmediate);
    expect(isRead).to.equal(false);
    free.resolve();
    expect((await producing).images).to.have.length(1);
    expect(seen).to.deep.equal(['enter']); // its pictures are still here
  });

  it('is not taken by an answer of which little has come', async () => {
    const rooms = makeRooms(4 * MIB);
    const gate = Promise.withResolvers<void>();
    upstream.programNext({ rawBody: ' '.repeat(10_000), rawBodyGate: gate.promise });
    const [slow, other] = [1, 1].map((count) => rooms.for({ size: SIZE, count }));
    const waiting = failureOf(images().produce(imageCall({ room: slow })));
    await upstream.waitForCall();
    upstream.programNext(LONG_ANSWER);
    const made = await images().produce(imageCall({ room: other, size: '300x300' }));
    expect(made.images).to.have.length(1);
    gate.resolve();
    await waiting;
  });

  it('is given back by an answer that takes long to arrive, which fails as a provider that is not there', async () => {
    const rooms = makeRooms(4 * MIB);
    upstream.programNext({ rawBody: MUCH, rawBodyGate: new Promise(() => {}) });
    const [slow, other] = [1, 1].map((count) => rooms.for({ size: SIZE, count }));
    const failure = await failureOf(images({ roomTimeoutMs: 20 }).produce(imageCall({ room: slow })));
    expect(failure).to.include({ kind: 'unavailable', isRetryable: true });
    await upstream.waitForAbort();
    await other?.enter();
  });

  it('is not waited for any more when the call is aborted', async () => {
    const aborting = new AbortController();
    const { room, seen, asked } = watchedRoom(new Promise(() => {}));
    const reason = new Error('enough');
    upstream.programNext(LONG_ANSWER);
    const producing = images().produce(imageCall({ signal: aborting.signal, room, size: '300x300' }));
    void asked.then(() => aborting.abort(reason));
    expect(await failureOf(producing)).to.equal(reason);
    expect(seen).to.deep.equal(['enter', 'leave']);
  });

  describe('of a stream', () => {
    const pictured = (prompt: string) =>
      `data: ${JSON.stringify({
        type: 'image_generation.completed',
        b64_json: makePng(300, 300).toString('base64'),
        revised_prompt: prompt,
      })}\n\n`;
    const streamOf = (room: AnswerRoom, changes: Partial<ImageCall> = {}, limits?: Partial<HttpLimits>) =>
      images(limits)
        .stream(imageCall({ room, size: '300x300', count: 2, ...changes }))
        [Symbol.asyncIterator]();

    it('is taken by an event that is no small one, and given back when the next is asked for', async () => {
      const free = Promise.withResolvers<void>();
      const { room, seen, asked } = watchedRoom(free.promise);
      upstream.programNext({ rawBody: [pictured(''), pictured(MUCH), pictured(MUCH)] });
      const stream = streamOf(room, { count: 3 });
      await stream.next();
      expect(seen).to.deep.equal([]);
      let isRead = false;
      const reading = stream.next().then(() => {
        isRead = true;
      });
      await asked;
      await new Promise(setImmediate);
      expect(isRead).to.equal(false);
      free.resolve();
      await reading;
      expect(seen).to.deep.equal(['enter']);
      await stream.next();
      expect(seen).to.deep.equal(['enter', 'leave', 'enter']);
      await stream.next();
      expect(seen).to.deep.equal(['enter', 'leave', 'enter', 'leave']);
    });

    it('is given back by an event that takes long to arrive, which fails as a provider that is not there', async () => {
      const { room, seen } = watchedRoom();
      upstream.programNext({ rawBody: `data: ${MUCH}`, rawBodyGate: new Promise(() => {}) });
      const failure = await failureOf(streamOf(room, {}, { roomTimeoutMs: 20 }).next());
      expect(failure).to.include({ kind: 'unavailable' });
      expect(seen).to.deep.equal(['enter', 'leave']);
      await upstream.waitForAbort();
    });

    it('has no limit of time between events', async () => {
      const { room, seen } = watchedRoom();
      const gate = Promise.withResolvers<void>();
      upstream.programNext({ rawBody: pictured(MUCH), rawBodyGate: gate.promise });
      const stream = streamOf(room, {}, { roomTimeoutMs: 100 });
      await stream.next();
      const ending = stream.next();
      expect(seen).to.deep.equal(['enter', 'leave']);
      setTimeout(gate.resolve, 200); // twice as long
      expect((await ending).done).to.equal(true);
    });

    it('is not waited for any more when the call is aborted, or its reader stops', async () => {
      const { room, seen, asked } = watchedRoom(new Promise(() => {}));
      const [aborting, reason] = [new AbortController(), new Error('enough')];
      upstream.programNext({ rawBody: pictured(MUCH) }, { rawBody: pictured(MUCH) });
      const failing = failureOf(streamOf(room, { signal: aborting.signal }).next());
      await asked;
      aborting.abort(reason);
      expect(await failing).to.equal(reason);
      expect(seen).to.deep.equal(['enter', 'leave']);

      const other = watchedRoom(new Promise(() => {}));
      const stream = streamOf(other.room);
      const reading = stream.next();
      await other.asked;
      await stream.return?.();
      expect((await reading).done).to.equal(true);
      expect(other.seen).to.deep.equal(['enter', 'leave']);
    });
  });
});
