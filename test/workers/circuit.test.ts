/** A route's circuit: who passes, and that nobody waits. */
import { expect } from 'chai';
import { afterEach, beforeEach, describe, it } from 'mocha';
import { Circuit, type Pass } from '../../workers/circuit.ts';

const OPEN_MS = 10_000;

describe('a circuit', () => {
  const { now } = Date;
  let clock: number;
  let circuit: Circuit;
  beforeEach(() => {
    clock = 1_000_000;
    Date.now = () => clock;
    circuit = new Circuit({ failures: 2, openMs: OPEN_MS });
  });
  afterEach(() => {
    Date.now = now;
  });

  const pass = (): Pass => circuit.enter() ?? expect.fail('nobody passes');
  const isOpen = (): boolean => circuit.enter() === undefined;
  const breakIt = (): void => {
    pass().failed();
    pass().failed();
    expect(isOpen()).to.equal(true);
  };
  const probe = (): Pass => {
    clock += OPEN_MS;
    return pass();
  };

  it('opens after consecutive failures alone', () => {
    pass().failed();
    pass().succeeded();
    pass().failed();
    pass().began();
    pass().abandoned();
    expect(isOpen()).to.equal(false);
    pass().failed();
    expect(isOpen()).to.equal(true);
  });

  it('lets one probe through, and sends the others away at once', () => {
    breakIt();
    const probing = probe();
    expect(isOpen()).to.equal(true);
    probing.failed();
    clock += OPEN_MS - 1;
    expect(isOpen()).to.equal(true);
    probe().succeeded();
    expect(isOpen()).to.equal(false);
    pass().failed();
    expect(isOpen()).to.equal(false);
  });

  it('closes when a probe begins to answer; a failure after that counts like any other', () => {
    breakIt();
    const probing = probe();
    probing.began();
    expect(isOpen()).to.equal(false);
    probing.failed();
    expect(isOpen()).to.equal(false);
    pass().failed();
    expect(isOpen()).to.equal(true);
  });

  it('lets the next probe through when the caller of one has left, or nothing is heard of it', () => {
    breakIt();
    probe().abandoned();
    pass();
    expect(isOpen()).to.equal(true);
    probe();
    expect(isOpen()).to.equal(true);
  });

  it('hears nothing from calls that began before it opened', () => {
    const early = [pass(), pass(), pass()] as const;
    breakIt();
    clock += OPEN_MS - 1;
    early[0].succeeded();
    early[1].failed();
    early[2].abandoned();
    expect(isOpen()).to.equal(true);
    clock += 1;
    pass();
  });
});
