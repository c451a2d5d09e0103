/** Whose turn it is among heavy requests, and that waiting takes nothing from anybody. */
import { expect } from 'chai';
import { afterEach, describe, it } from 'mocha';
import { makeInputBudget, makePlaces, type Places } from '../../workers/places.ts';
import { makeGate } from '../helpers/service.ts';

const KIB = 1024;

describe('places for heavy requests', () => {
  let places: Places;
  /** Names of requests in the order they began. */
  const begun: string[] = [];
  const gates = new Map<string, () => void>();
  const runs: Promise<unknown>[] = [];

  afterEach(async () => {
    while (gates.size > 0) await end([...gates.keys()][0] ?? '');
    await Promise.allSettled(runs.splice(0));
    begun.length = 0;
  });

  /** `name`: the account's letter, and a number. */
  function ask(name: string, inputBytes = 0, signal = new AbortController().signal): Promise<unknown> {
    const gate = makeGate();
    const run = places.inTurn({ accountId: name.slice(0, 1), inputBytes, signal }, () => {
      begun.push(name);
      gates.set(name, gate.open);
      return gate.passed;
    });
    run.catch(() => {});
    runs.push(run);
    return run;
  }
  async function end(name: string): Promise<void> {
    gates.get(name)?.();
    gates.delete(name);
    await settled();
  }
  /** What is due has begun. */
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  async function askAll(names: readonly string[], inputBytes?: number): Promise<void> {
    for (const name of names) void ask(name, inputBytes);
    await settled();
  }

  it('are never all taken by one account, unless there is one only', async () => {
    places = makePlaces({ count: 4, inputs: makeInputBudget(0) });
    await askAll(['a1', 'a2', 'a3', 'a4', 'b1', 'b2']);
    expect(begun).to.deep.equal(['a1', 'a2', 'a3', 'b1']);
    places = makePlaces({ count: 1, inputs: makeInputBudget(0) });
    await askAll(['c1', 'c2']);
    expect(begun.slice(4)).to.deep.equal(['c1']);
  });

  it('go next to the account with the fewest under way, in the order of arrival among equals', async () => {
    places = makePlaces({ count: 4, inputs: makeInputBudget(0) });
    await askAll(['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'c1']);
    await end('a1');
    expect(begun.slice(4)).to.deep.equal(['c1']);
    await end('a2');
    expect(begun.slice(5)).to.deep.equal(['a4']);
    await end('a3');
    await end('b1');
    expect(begun.slice(6)).to.deep.equal(['a5', 'b2']);
  });

  it('wait for room for their inputs; those without any do not', async () => {
    places = makePlaces({ count: 8, inputs: makeInputBudget(10 * KIB) });
    await askAll(['a1', 'b1'], 5 * KIB);
    await askAll(['c1'], 5 * KIB);
    await askAll(['d1'], KIB);
    await askAll(['e1']);
    expect(begun).to.deep.equal(['a1', 'b1', 'e1']);
    await end('a1');
    // the small one came later, and does not keep the large one waiting for ever
    expect(begun.slice(3)).to.deep.equal(['c1']);
    await end('b1');
    expect(begun.slice(4)).to.deep.equal(['d1']);
  });

  it('give no account more than half the room for inputs, and one alone what it needs', async () => {
    places = makePlaces({ count: 8, inputs: makeInputBudget(10 * KIB) });
    await askAll(['a1', 'a2', 'a3', 'b1'], 2 * KIB);
    expect(begun).to.deep.equal(['a1', 'a2', 'b1']);
    for (const name of ['a1', 'a2', 'b1', 'a3']) await end(name);
    await askAll(['a4'], 30 * KIB);
    expect(begun.slice(4)).to.deep.equal(['a4']);
  });

  it('are left by who is stopped while waiting, and by work that fails', async () => {
    places = makePlaces({ count: 1, inputs: makeInputBudget(0) });
    await askAll(['a1']);
    const stop = new AbortController();
    const stopped = ask('b1', 0, stop.signal).catch((error: unknown) => error);
    const reason = new Error('stopped');
    stop.abort(reason);
    expect(await stopped).to.equal(reason);
    await end('a1');
    const signal = new AbortController().signal;
    const failure = new Error('on purpose');
    const failing = places.inTurn({ accountId: 'c', inputBytes: 0, signal }, () => Promise.reject(failure));
    expect(await failing.catch((error: unknown) => error)).to.equal(failure);
    await askAll(['d1']);
    expect(begun).to.deep.equal(['a1', 'd1']);
  });
});
