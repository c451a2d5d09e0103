/** Which lane hears of which jobs, and that the engine's pool is otherwise the engine's. */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import type { PoolClient } from 'pg';
import type { Pool } from '../../core/database.ts';
import { makeAnnouncements } from '../../workers/announcements.ts';

describe('announcements of jobs', () => {
  const heard: string[] = [];
  const pool = { connect: async () => 'a connection', query: async () => 'rows' } as unknown as Pool;

  /** As the engine does: asks for a connection with a callback, and listens on it. */
  function listen(announcements: ReturnType<typeof makeAnnouncements>, ...taskNames: string[]) {
    let stop = (): void => {};
    announcements.poolFor(pool, taskNames).connect((error, client, release) => {
      expect(error).to.equal(undefined);
      (client as PoolClient).on('notification', ({ channel, payload }) => {
        heard.push(`${taskNames[0]} ${channel} ${payload}`);
      });
      stop = release;
    });
    return () => stop();
  }

  function setUp() {
    heard.length = 0;
    const announcements = makeAnnouncements();
    const stops = [listen(announcements, 'chat', 'purge'), listen(announcements, 'images')];
    return { announcements, stops, tell: announcements.handlers };
  }

  it('reach the lanes whose jobs they are', () => {
    const { tell } = setUp();
    tell['jobs:insert']('{"count":2,"tasks":["chat"]}');
    expect(heard).to.deep.equal(['chat jobs:insert {"count":2,"tasks":["chat"]}']);
    tell['jobs:insert']('{"count":2,"tasks":["images","purge"]}');
    expect(heard).to.have.length(3);
    tell['jobs:insert']('{"count":1,"tasks":["speech"]}');
    expect(heard).to.have.length(3);
  });

  it('reach everybody where nothing is said of tasks', () => {
    for (const payload of ['{"r":0.5,"count":1}', '', 'null', '7', 'no JSON']) {
      const { tell } = setUp();
      tell['jobs:insert'](payload);
      expect(heard).to.deep.equal([`chat jobs:insert ${payload}`, `images jobs:insert ${payload}`]);
    }
  });

  it('are made up for after a gap, and a migration concerns everybody', () => {
    const { announcements, tell } = setUp();
    announcements.lookAgain();
    tell['worker:migrate']('{"breaking":true}');
    expect(heard).to.deep.equal([
      'chat jobs:insert ',
      'images jobs:insert ',
      'chat worker:migrate {"breaking":true}',
      'images worker:migrate {"breaking":true}',
    ]);
  });

  it('end with the lane', () => {
    const { announcements, stops } = setUp();
    stops[0]?.();
    announcements.lookAgain();
    expect(heard).to.deep.equal(['images jobs:insert ']);
  });

  it('leave the pool as it is for everything else', async () => {
    const lane = makeAnnouncements().poolFor(pool, ['chat']);
    expect(await lane.connect()).to.equal('a connection');
    expect(await lane.query('select')).to.equal('rows');
  });
});
