/** Room for large chat answers: for their bytes while they arrive, and for what becomes of them until the request is settled. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type { GrowingRoom } from '../../../../workers/providers/provider.ts';
import { type ChatRooms, makeChatRooms } from '../../../../workers/tasks/chat/room.ts';
import { failureOf } from '../../providers/conformance.ts';

const MIB = 1024 * 1024;

interface OneRun {
  readonly room: GrowingRoom;
  end(): void;
  abort(reason: Error): void;
}

function runIn(rooms: ChatRooms): OneRun {
  const [over, aborting] = [Promise.withResolvers<void>(), new AbortController()];
  const room = rooms.for({ over: over.promise, signal: aborting.signal });
  return { room, end: over.resolve, abort: (reason) => aborting.abort(reason) };
}

/** Whether it has happened once everything that could happen has. */
async function hasHappened(work: Promise<unknown>): Promise<boolean> {
  let isDone = false;
  void work.then(() => {
    isDone = true;
  });
  await new Promise(setImmediate);
  return isDone;
}

describe('room for chat answers', () => {
  it('is held until the request is settled', async () => {
    const rooms = makeChatRooms(8 * MIB);
    const [one, other] = [runIn(rooms), runIn(rooms)];
    await one.room.enter(MIB);
    await one.room.grow(6 * MIB);
    await other.room.enter(MIB);
    const growing = other.room.grow(6 * MIB);
    expect(await hasHappened(growing)).to.equal(false);
    one.end();
    await growing;
    other.end();
  });

  it('is for four of the largest answers that arrive at once, whatever becomes of those that have', async () => {
    const rooms = makeChatRooms(8 * MIB);
    const runs = [1, 2, 3, 4, 5].map(() => runIn(rooms));
    const [first, , third, , fifth] = runs;
    for (const { room } of runs.slice(0, 4)) await room.enter(16 * MIB);
    const entering = fifth?.room.enter(16 * MIB) ?? expect.fail();
    expect(await hasHappened(entering)).to.equal(false);
    await first?.room.grow(8 * MIB);
    await entering;
    third?.room.leave(); // its answer broke off
    await third?.room.enter(16 * MIB); // and is asked for again
    for (const { end } of runs) end();
  });

  it('is passed on by who was stopped while waiting for it', async () => {
    const rooms = makeChatRooms(8 * MIB);
    const [one, two, three] = [runIn(rooms), runIn(rooms), runIn(rooms)];
    for (const { room } of [one, two, three]) await room.enter(MIB);
    await one.room.grow(8 * MIB);
    const [stopped, growing] = [failureOf(two.room.grow(8 * MIB)), three.room.grow(8 * MIB)];
    const reason = new Error('enough');
    two.abort(reason);
    expect(await stopped).to.equal(reason);
    two.end();
    one.end();
    await growing;
  });
});
