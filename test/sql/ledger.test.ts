/**
 * The ledger as tables: transfer, what the ledger says, balances after it (`[balance, held, purchased]`). Each table has an
 * account of its own; after the last line the books must agree with themselves.
 */
import { expect } from 'chai';
import { describe, it } from 'mocha';
import { withDatabase } from '../helpers/database.ts';
import {
  add,
  type Balances,
  balancesOf,
  cancel,
  end,
  entriesOf,
  expectCleanLedger,
  expire,
  fail,
  openBook,
  post,
  refund,
  reserve,
  reserveBatch,
  type Transfer,
} from './book.ts';

interface Table {
  readonly title: string;
  readonly grantedAp?: number;
  readonly purchasedAp?: number;
  readonly initialGrantAp?: number;
  readonly lines: readonly (readonly [Transfer, string, Balances])[];
  /** The account's entries at the end, without its opening credit. */
  readonly entries?: readonly string[];
}

// 25 AP per 1,000 input tokens and 100 per 1,000 output tokens: 40 input tokens cost 1,000 milli-AP, an output token 100
const chat = { fixed_milli_ap: 1000, unit_milli_ap: 100, min_units: 16, max_units: 4096 };

const TABLES: Record<string, readonly Table[]> = {
  reserve: [
    {
      title: 'holds what is asked for and leaves the balance',
      grantedAp: 1000,
      lines: [
        [reserve('a', { hold_ap: 100 }), 'accepted 100', [1000, 100, 0]],
        [reserve('b', { hold_ap: 900 }), 'accepted 900', [1000, 1000, 0]],
      ],
      entries: [],
    },
    {
      title: 'refuses what is not available, held amounts included',
      grantedAp: 1000,
      lines: [
        [reserve('a', { hold_ap: 1001 }), 'insufficient_ap 1001/1000', [1000, 0, 0]],
        [reserve('b', { hold_ap: 600 }), 'accepted 600', [1000, 600, 0]],
        [reserve('c', { hold_ap: 401 }), 'insufficient_ap 401/400', [1000, 600, 0]],
        [reserve('d', { hold_ap: 400 }), 'accepted 400', [1000, 1000, 0]],
        [reserve('e', { hold_ap: 1 }), 'insufficient_ap 1/0', [1000, 1000, 0]],
      ],
    },
    {
      title: 'holds nothing for what is free, on an empty account too',
      lines: [
        [reserve('a', { hold_ap: 0 }), 'accepted 0', [0, 0, 0]],
        [post('a', 0), 'settled succeeded 0', [0, 0, 0]],
      ],
      entries: [],
    },
    {
      title: 'rounds thousandths of an AP up, once per request',
      grantedAp: 1000,
      lines: [
        [reserve('a', { fixed_milli_ap: 1 }), 'accepted 1', [1000, 1, 0]],
        [reserve('b', { fixed_milli_ap: 1000 }), 'accepted 1', [1000, 2, 0]],
        [reserve('c', { fixed_milli_ap: 1001 }), 'accepted 2', [1000, 4, 0]],
        [reserve('d', { fixed_milli_ap: 999, unit_milli_ap: 1, max_units: 1 }), 'accepted 1', [1000, 5, 0]],
      ],
    },
    {
      title: 'lowers the units to what the balance can pay for',
      grantedAp: 100,
      lines: [
        [reserve('a', chat), 'accepted 100 for 990', [100, 100, 0]],
        [post('a', 51), 'settled succeeded 51', [49, 0, 0]],
        [reserve('b', { ...chat, fixed_milli_ap: 1050 }), 'accepted 49 for 479', [49, 49, 0]],
      ],
    },
    {
      title: 'does not lower what can be paid in full',
      grantedAp: 411,
      lines: [[reserve('a', chat), 'accepted 411', [411, 411, 0]]],
    },
    {
      title: 'lowers by one unit where one unit is missing',
      grantedAp: 410,
      lines: [[reserve('a', chat), 'accepted 410 for 4090', [410, 410, 0]]],
    },
    {
      title: 'refuses fewer units than the minimum, and says what the minimum needs',
      grantedAp: 2,
      lines: [
        // 1,000 + 16 × 100 = 2,600 milli-AP
        [reserve('a', chat), 'insufficient_ap 3/2', [2, 0, 0]],
        [add('grant', 1), 'balance 3', [3, 0, 0]],
        [reserve('b', chat), 'accepted 3 for 20', [3, 3, 0]],
      ],
    },
    {
      title: 'refuses where not even the fixed part can be paid',
      lines: [
        [reserve('a', chat), 'insufficient_ap 3/0', 'no row'],
        [reserve('b', { ...chat, fixed_milli_ap: 5_000_000 }), 'insufficient_ap 5002/0', 'no row'],
      ],
    },
    {
      title: 'accepts a caller’s own cap below the minimum, in full or not at all',
      grantedAp: 1,
      lines: [
        [reserve('a', { ...chat, max_units: 5 }), 'insufficient_ap 2/1', [1, 0, 0]],
        [add('grant', 1), 'balance 2', [2, 0, 0]],
        [reserve('b', { ...chat, max_units: 5 }), 'accepted 2', [2, 2, 0]],
      ],
    },
    {
      title: 'refuses where free units cannot make the fixed part cheaper',
      grantedAp: 1,
      lines: [
        [
          reserveBatch(['a', { ...chat, fixed_milli_ap: 2000, unit_milli_ap: 0 }], ['b', { hold_ap: 1 }]),
          'insufficient_ap 2/1 | accepted 1',
          [1, 1, 0],
        ],
      ],
    },
    {
      title: 'sees the earlier ones of the same batch',
      grantedAp: 100,
      lines: [
        [
          reserveBatch(['a', { hold_ap: 60 }], ['b', { hold_ap: 60 }], ['c', { hold_ap: 40 }]),
          'accepted 60 | insufficient_ap 60/40 | accepted 40',
          [100, 100, 0],
        ],
      ],
    },
  ],

  'initial grant': [
    {
      title: 'comes with the first billable call, once',
      initialGrantAp: 500,
      lines: [
        [reserve('a', { hold_ap: 100 }), 'accepted 100', [500, 100, 0]],
        [reserve('b', { hold_ap: 401 }), 'insufficient_ap 401/400', [500, 100, 0]],
        [post('a', 100), 'settled succeeded 100', [400, 0, 0]],
        [reserve('c', { hold_ap: 400 }), 'accepted 400', [400, 400, 0]],
      ],
      entries: ['initial_grant 500 = 500', 'charge -100 = 400'],
    },
    {
      title: 'comes once though the first two calls come together',
      initialGrantAp: 500,
      lines: [
        [
          reserveBatch(['a', { hold_ap: 300 }], ['b', { hold_ap: 300 }]),
          'accepted 300 | insufficient_ap 300/200',
          [500, 300, 0],
        ],
      ],
      entries: ['initial_grant 500 = 500'],
    },
    {
      title: 'does not come with a refused call',
      initialGrantAp: 500,
      lines: [
        [reserve('a', { hold_ap: 501 }), 'insufficient_ap 501/500', 'no row'],
        [reserve('b', { hold_ap: 500 }), 'accepted 500', [500, 500, 0]],
      ],
    },
    {
      title: 'comes on top of what was bought before the first call',
      purchasedAp: 50,
      initialGrantAp: 500,
      lines: [[reserve('a', { hold_ap: 550 }), 'accepted 550', [550, 550, 50]]],
    },
    {
      title: 'is not for an account that is too new, which may spend what it bought',
      initialGrantAp: 500,
      lines: [
        [reserve('a', { is_grant_allowed: false }), 'account_too_new 100/0', 'no row'],
        [add('purchase', 100), 'balance 100', [100, 0, 100]],
        [reserve('b', { is_grant_allowed: false, hold_ap: 101 }), 'insufficient_ap 101/100', [100, 0, 100]],
        [reserve('c', { is_grant_allowed: false }), 'accepted 100', [100, 100, 100]],
        [reserve('d', { is_grant_allowed: true, hold_ap: 500 }), 'accepted 500', [600, 600, 100]],
      ],
    },
    {
      title: 'is not asked about once it was had',
      initialGrantAp: 500,
      lines: [
        [reserve('a', { hold_ap: 500 }), 'accepted 500', [500, 500, 0]],
        [post('a', 500), 'settled succeeded 500', [0, 0, 0]],
        [reserve('b', { is_grant_allowed: false }), 'insufficient_ap 100/0', [0, 0, 0]],
      ],
    },
  ],

  'post and void': [
    {
      title: 'takes the cost and returns the rest',
      grantedAp: 1000,
      lines: [
        [reserve('a', { hold_ap: 100 }), 'accepted 100', [1000, 100, 0]],
        [reserve('b', { hold_ap: 200 }), 'accepted 200', [1000, 300, 0]],
        [post('a', 30), 'settled succeeded 30', [970, 200, 0]],
        [post('b', 200), 'settled succeeded 200', [770, 0, 0]],
      ],
      entries: ['charge -30 = 970', 'charge -200 = 770'],
    },
    {
      title: 'cuts a cost above the hold to the hold, and one below zero to zero',
      grantedAp: 1000,
      lines: [
        [reserve('a', { hold_ap: 100 }), 'accepted 100', [1000, 100, 0]],
        [post('a', 101), 'settled succeeded 100', [900, 0, 0]],
        [reserve('b', { hold_ap: 100 }), 'accepted 100', [900, 100, 0]],
        [post('b', -5), 'settled succeeded 0', [900, 0, 0]],
      ],
      entries: ['charge -100 = 900'],
    },
    {
      title: 'returns everything on failure, cancellation and expiry',
      grantedAp: 1000,
      lines: [
        [reserveBatch(['a'], ['b'], ['c']), 'accepted 100 | accepted 100 | accepted 100', [1000, 300, 0]],
        [fail('a'), 'settled failed 0', [1000, 200, 0]],
        [cancel('b'), 'settled cancelled 0', [1000, 100, 0]],
        [expire('c'), 'expired c', [1000, 0, 0]],
      ],
      entries: [],
    },
    {
      title: 'charges a cancelled stream for what was produced',
      grantedAp: 1000,
      lines: [
        [reserve('a'), 'accepted 100', [1000, 100, 0]],
        [end('a', { state: 'cancelled', cost_ap: 7 }), 'settled cancelled 7', [993, 0, 0]],
      ],
      entries: ['charge -7 = 993'],
    },
    {
      title: 'changes nothing the second time, whoever comes second',
      grantedAp: 1000,
      lines: [
        [reserve('a'), 'accepted 100', [1000, 100, 0]],
        [post('a', 30), 'settled succeeded 30', [970, 0, 0]],
        [post('a', 60), 'unchanged succeeded 30', [970, 0, 0]],
        [fail('a'), 'unchanged succeeded 30', [970, 0, 0]],
        [cancel('a'), 'unchanged succeeded 30', [970, 0, 0]],
        [expire('a'), 'expired', [970, 0, 0]],
        [reserve('b'), 'accepted 100', [970, 100, 0]],
        [cancel('b'), 'settled cancelled 0', [970, 0, 0]],
        [post('b', 30), 'unchanged cancelled 0', [970, 0, 0]],
        [reserve('c'), 'accepted 100', [970, 100, 0]],
        [expire('c'), 'expired c', [970, 0, 0]],
        [post('c', 30), 'unchanged expired 0', [970, 0, 0]],
      ],
      entries: ['charge -30 = 970'],
    },
  ],

  'bought AP': [
    {
      title: 'is spent before granted AP',
      grantedAp: 100,
      purchasedAp: 50,
      lines: [
        [reserve('a'), 'accepted 100', [150, 100, 50]],
        [post('a', 30), 'settled succeeded 30', [120, 0, 20]],
        [reserve('b'), 'accepted 100', [120, 100, 20]],
        [post('b', 100), 'settled succeeded 100', [20, 0, 0]],
        [add('purchase', 5), 'balance 25', [25, 0, 5]],
      ],
    },
    {
      title: 'is all that an account without a card may spend, whatever is in flight',
      grantedAp: 500,
      purchasedAp: 50,
      lines: [
        [reserve('a', { needs_purchased: true, hold_ap: 30 }), 'accepted 30', [550, 30, 50]],
        [reserve('b', { needs_purchased: true, hold_ap: 30 }), 'accepted 30', [550, 60, 50]],
        [reserve('c', { needs_purchased: true, hold_ap: 30 }), 'card_required 30/490', [550, 60, 50]],
        [reserve('d', { hold_ap: 30 }), 'accepted 30', [550, 90, 50]],
      ],
    },
    {
      title: 'is what is left when an adjustment takes out more than was granted',
      grantedAp: 100,
      purchasedAp: 50,
      lines: [
        [add('adjustment', -70), 'balance 80', [80, 0, 50]],
        [add('adjustment', -40), 'balance 40', [40, 0, 40]],
        [add('adjustment', 10), 'balance 50', [50, 0, 40]],
      ],
    },
  ],

  credit: [
    {
      title: 'adds to an account, which need not have been used before',
      lines: [
        [add('grant', 10), 'balance 10', [10, 0, 0]],
        [add('purchase', 20), 'balance 30', [30, 0, 20]],
        [add('adjustment', 5), 'balance 35', [35, 0, 20]],
        [add('adjustment', -5), 'balance 30', [30, 0, 20]],
      ],
      entries: ['grant 10 = 10', 'purchase 20 = 30', 'adjustment 5 = 35', 'adjustment -5 = 30'],
    },
    {
      title: 'never takes out what is held or was never there',
      grantedAp: 100,
      lines: [
        [reserve('a', { hold_ap: 60 }), 'accepted 60', [100, 60, 0]],
        [add('adjustment', -41), 'the adjustment is larger than the available balance', [100, 60, 0]],
        [add('adjustment', -40), 'balance 60', [60, 60, 0]],
        [post('a', 60), 'settled succeeded 60', [0, 0, 0]],
        [add('adjustment', -1), 'the adjustment is larger than the available balance', [0, 0, 0]],
      ],
    },
    {
      title: 'refuses nothing, and less than nothing where it is no adjustment',
      grantedAp: 100,
      lines: [
        [add('grant', 0), 'the number of AP must not be 0', [100, 0, 0]],
        [add('adjustment', 0), 'the number of AP must not be 0', [100, 0, 0]],
        [add('purchase', -1), 'a purchase must be a positive number of AP', [100, 0, 0]],
      ],
      entries: [],
    },
  ],

  refund: [
    {
      title: 'gives back part by part, never more than was charged',
      grantedAp: 1000,
      lines: [
        [reserve('a'), 'accepted 100', [1000, 100, 0]],
        [post('a', 60), 'settled succeeded 60', [940, 0, 0]],
        [refund('a', 61), 'the request cost 60 AP, of which 0 are refunded', [940, 0, 0]],
        [refund('a', 40), 'balance 980', [980, 0, 40]],
        [refund('a', 21), 'the request cost 60 AP, of which 40 are refunded', [980, 0, 40]],
        [refund('a', 20), 'balance 1000', [1000, 0, 60]],
        [refund('a', 1), 'the request cost 60 AP, of which 60 are refunded', [1000, 0, 60]],
      ],
      entries: ['charge -60 = 940', 'refund 40 = 980', 'refund 20 = 1000'],
    },
    {
      title: 'refuses what was not charged, and nothing at all',
      grantedAp: 1000,
      lines: [
        [reserve('a'), 'accepted 100', [1000, 100, 0]],
        [refund('a', 1), 'the request cost 0 AP, of which 0 are refunded', [1000, 100, 0]],
        [cancel('a'), 'settled cancelled 0', [1000, 0, 0]],
        [refund('a', 1), 'the request cost 0 AP, of which 0 are refunded', [1000, 0, 0]],
        [refund('a', 0), 'a refund must be a positive number of AP', [1000, 0, 0]],
      ],
      entries: [],
    },
  ],
};

describe('the ledger', () => {
  const database = withDatabase();

  for (const [area, tables] of Object.entries(TABLES)) {
    describe(area, () => {
      for (const table of tables) {
        it(table.title, async () => {
          const book = await openBook(database.pool, table);
          const opening = (await entriesOf(database.pool, book.accountId)).length;
          for (const [index, [transfer, said, balances]] of table.lines.entries()) {
            expect(await transfer(book), `line ${index + 1}`).to.equal(said);
            expect(await balancesOf(database.pool, book.accountId), `line ${index + 1}`).to.deep.equal(
              balances,
            );
          }
          if (table.entries !== undefined) {
            expect((await entriesOf(database.pool, book.accountId)).slice(opening)).to.deep.equal(
              table.entries,
            );
          }
          await expectCleanLedger(database.pool);
        });
      }
    });
  }
});
