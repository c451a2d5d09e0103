/** The beacon: views are counted by day and page, in few writes, of nobody in particular. */
import { expect } from 'chai';
import { beforeEach, describe, it } from 'mocha';
import type { Pool } from '../../core/database.ts';
import { makePageViewCounter, normalPage } from '../../ingress/page-views.ts';
import { selectRows, withDatabase } from '../helpers/database.ts';
import { withTestService } from '../helpers/service.ts';

const TODAY = '2026-03-04';
const now = () => new Date(`${TODAY}T23:59:00Z`);

describe('page views', () => {
  const database = withDatabase();
  const errors: Error[] = [];
  const countWith = (pool: Pool) =>
    makePageViewCounter({ pool, now, onError: (error) => errors.push(error) });
  const stored = () =>
    selectRows<{ day: string; page: string; views: number }>(
      database.pool,
      `select to_char(day, 'YYYY-MM-DD') as day, page, views from app.page_views order by day, page`,
    );

  beforeEach(async () => {
    errors.length = 0;
    await database.pool.query('truncate app.page_views');
  });

  it('are added up by day and page, whoever counted them', async () => {
    const [one, other] = [countWith(database.pool), countWith(database.pool)];
    for (let index = 0; index < 5; index += 1) one.count('/a');
    one.count('/b?token=secret#x');
    other.count('/a');
    await Promise.all([one.flush(), other.flush()]);
    one.count('/a');
    await Promise.all([one.close(), other.close()]);
    expect(await stored()).to.deep.equal([
      { day: TODAY, page: '/a', views: 7 },
      { day: TODAY, page: '/b', views: 1 },
    ]);
    expect(errors).to.deep.equal([]);
  });

  it('are written in one statement, and none where there are none', async () => {
    let queries = 0;
    const counting = new Proxy(database.pool, {
      get: (pool, name) => {
        if (name === 'query') queries += 1;
        return Reflect.get(pool, name) as unknown;
      },
    });
    const views = countWith(counting);
    for (let index = 0; index < 10_000; index += 1) views.count(`/${index % 500}`);
    await views.flush();
    await views.flush();
    await views.close();
    expect(queries).to.equal(1);
    expect(await stored()).to.have.length(500);
  });

  it('of more pages than one flush takes by name are counted as others', async () => {
    const views = countWith(database.pool);
    for (let index = 0; index < 3000; index += 1) views.count(`/page/${index}`);
    await views.close();
    const rows = await stored();
    expect(rows).to.have.length(1001);
    expect(rows.find(({ page }) => page === '(other)')?.views).to.equal(2000);
  });

  it('of more pages than a day has by name are counted as others', async () => {
    await database.pool.query(
      `insert into app.page_views select $1, '/old/' || n, 1 from generate_series(1, 9999) n`,
      [TODAY],
    );
    const views = countWith(database.pool);
    for (const page of ['/old/1', '/new/1', '/new/2', '/new/3']) views.count(page);
    await views.close();
    const rows = (await stored()).filter(({ page, views: count }) => !page.startsWith('/old') || count > 1);
    expect(rows).to.deep.equal([
      { day: TODAY, page: '(other)', views: 2 },
      { day: TODAY, page: '/new/1', views: 1 },
      { day: TODAY, page: '/old/1', views: 2 },
    ]);
  });

  it('that could not be written are kept for the next time', async () => {
    let isDown = true;
    const failing = new Proxy(database.pool, {
      get: (pool, name) =>
        name === 'query' && isDown
          ? () => Promise.reject(new Error('down'))
          : (Reflect.get(pool, name) as unknown),
    });
    const views = countWith(failing);
    views.count('/a');
    await views.flush();
    expect(errors).to.have.length(1);
    views.count('/a');
    isDown = false;
    await views.close();
    expect(await stored()).to.deep.equal([{ day: TODAY, page: '/a', views: 2 }]);
  });

  for (const [text, page] of [
    ['', '/'],
    ['/', '/'],
    ['/a//b/?x=1#y', '/a/b'],
    ['https://somebody:secret@site.example/gallery?u=1', '/gallery'],
    ['HTTP://site.example', '/'],
    ['gallery', '(other)'],
    ['/me@mail.example', '(other)'],
    ['/%2e%2e', '(other)'],
    [`/${'t'.repeat(65)}`, '(other)'],
    [`/${'abc/'.repeat(40)}`, '(other)'],
    ['javascript:alert(1)', '(other)'],
    ['/a\u0000b', '(other)'],
  ] as const) {
    it(`calls ${JSON.stringify(text.slice(0, 60))} ${page}`, () => {
      expect(normalPage(text)).to.equal(page);
    });
  }
});

describe('the beacon', () => {
  const service = withTestService({ config: { ipDailyCap: 3 } });

  it('answers 204 without a key, sets no cookie, and is capped by address and day', async () => {
    for (const query of ['?p=/gallery', '', '?p=/a&p=/b']) {
      const answer = await service.get(`/v1/images/beacon${query}`);
      expect(answer.status).to.equal(204);
      expect(answer.text).to.equal('');
      expect(answer.headers.get('set-cookie')).to.equal(null);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
    }
    const refused = await service.get('/v1/images/beacon?p=/gallery');
    expect(refused.json.error.code).to.equal('ip_daily_cap');
    const inspected = await service.post('/v1/images/inspect', { body: 'x' });
    expect(inspected.json.error.code, 'tools have an allowance of their own').to.not.equal('ip_daily_cap');
  });
});
