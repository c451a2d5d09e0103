/** Room for answers full of pictures, and that an answer stays in its socket until there is some. */
import { expect } from 'chai';
import { after, before, describe, it } from 'mocha';
import { makeOpenAiProvider } from '../../../../workers/providers/openai/index.ts';
import type { Provider } from '../../../../workers/providers/provider.ts';
import { makeRooms } from '../../../../workers/tasks/images/room.ts';
import { type MockUpstream, startMockUpstream } from '../../../helpers/mock-upstream.ts';
import { imageCall } from '../../providers/conformance-images.ts';

const MIB = 1024 * 1024;
/** As a picture of this size is counted: 4 MiB. */
const SIZE = '1024x1024';

describe('room for answers', () => {
  let upstream: MockUpstream;
  let provider: Provider;
  before(async () => {
    upstream = await startMockUpstream();
    provider = makeOpenAiProvider({
      name: 'mock',
      kind: 'openai',
      baseUrl: upstream.baseUrl,
      credential: undefined,
    });
  });
  after(async () => {
    await provider.close();
    await upstream.close();
  });

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

  it('is waited for before an answer is read, and not by one that has failed', async () => {
    const room = Promise.withResolvers<void>();
    let asked = 0;
    const enter = (): Promise<void> => {
      asked += 1;
      return room.promise;
    };
    upstream.programNext({ status: 500 });
    await provider.image?.produce(imageCall({ room: enter })).then(
      () => expect.fail('it fails'),
      () => {},
    );
    expect(asked).to.equal(0);

    let isRead = false;
    const producing = provider.image?.produce(imageCall({ size: '300x300', room: enter })).then((made) => {
      isRead = true;
      return made;
    });
    while (asked === 0) await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(isRead).to.equal(false);
    room.resolve();
    expect((await producing)?.images).to.have.length(1);
  });

  it('is not waited for any more when the call is aborted', async () => {
    const aborting = new AbortController();
    const never = new Promise<void>(() => {});
    const reason = new Error('enough');
    const producing = provider.image?.produce(
      imageCall({
        signal: aborting.signal,
        room: () => {
          aborting.abort(reason);
          return never;
        },
      }),
    );
    await producing?.then(
      () => expect.fail('it was aborted'),
      (error: unknown) => expect(error).to.equal(reason),
    );
  });
});
