-- Compares the books with themselves: balances with ledger, held amounts with open holds, holds with requests.
-- One snapshot, no locks. `problems` names each fault with the account or request it concerns (at most 100 of a kind).
create or replace function app.ledger_check()
returns table (accounts bigint, entries bigint, open_holds bigint, stale_holds bigint, drift_ap bigint, problems jsonb)
language sql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  with sums as (
    select l.account_id, sum(l.amount_ap)::bigint as ledger_ap, count(*) as entries from app.ledger_entries l group by l.account_id
  ), open as (
    select h.account_id, sum(h.amount_ap)::bigint as held_ap, count(*) as holds,
           count(*) filter (where h.deadline_at < now() - interval '60 seconds') as stale
      from app.holds h group by h.account_id
  ), compared as (
    select coalesce(b.account_id, s.account_id, o.account_id) as account_id,
           coalesce(b.balance_ap, 0) as balance_ap, coalesce(s.ledger_ap, 0) as ledger_ap,
           coalesce(b.held_ap, 0) as held_ap, coalesce(o.held_ap, 0) as open_ap,
           coalesce(s.entries, 0) as entries, coalesce(o.holds, 0) as holds, coalesce(o.stale, 0) as stale
      from app.balances b
      full join sums s on s.account_id = b.account_id
      full join open o on o.account_id = coalesce(b.account_id, s.account_id)
  ), paired as materialized (
    -- both large tables once: requests beside their charges, but for the pairs that agree
    select q.id, q.account_id, q.cost_ap, q.finished_at is null as is_open,
           l.request_id as charged_id, l.account_id as charged_account_id, -l.amount_ap as charged_ap
      from app.requests q
      full join (select * from app.ledger_entries where kind = 'charge') l on l.request_id = q.id
      where (q.finished_at is null or q.cost_ap is distinct from coalesce(-l.amount_ap, 0) or q.account_id <> l.account_id)
  ), faults as (
    (select jsonb_build_object('problem', 'balance_differs_from_ledger', 'account_id', account_id,
                              'balance_ap', balance_ap, 'ledger_ap', ledger_ap) as fault
      from compared where balance_ap <> ledger_ap limit 100)
    union all
    (select jsonb_build_object('problem', 'held_differs_from_open_holds', 'account_id', account_id,
                              'held_ap', held_ap, 'open_holds_ap', open_ap)
      from compared where held_ap <> open_ap limit 100)
    union all
    (select jsonb_build_object('problem', 'hold_past_its_deadline', 'request_id', h.request_id, 'deadline_at', h.deadline_at)
      from app.holds h where h.deadline_at < now() - interval '60 seconds' limit 100)
    union all
    (select jsonb_build_object('problem', 'hold_without_open_request', 'request_id', h.request_id, 'state', q.state)
      from app.holds h left join app.requests q on q.id = h.request_id
      where q.id is null or q.finished_at is not null or q.hold_ap <> h.amount_ap or q.account_id <> h.account_id limit 100)
    union all
    (select jsonb_build_object('problem', 'open_request_without_hold', 'request_id', q.id)
      from paired q
      where q.is_open and not exists (select from app.holds h where h.request_id = q.id) limit 100)
    union all
    (select jsonb_build_object('problem', 'charge_differs_from_request', 'request_id', charged_id,
                              'charged_ap', charged_ap, 'cost_ap', cost_ap)
      from paired
      where charged_id is not null and (cost_ap is distinct from charged_ap or account_id <> charged_account_id) limit 100)
    union all
    (select jsonb_build_object('problem', 'cost_without_charge', 'request_id', id, 'cost_ap', cost_ap)
      from paired where cost_ap > 0 and charged_id is null limit 100)
  )
  select (select count(*) from app.accounts),
         coalesce(sum(c.entries), 0)::bigint,
         coalesce(sum(c.holds), 0)::bigint,
         coalesce(sum(c.stale), 0)::bigint,
         coalesce(sum(abs(c.balance_ap - c.ledger_ap) + abs(c.held_ap - c.open_ap)), 0)::bigint,
         coalesce((select jsonb_agg(f.fault) from faults f), '[]')
    from compared c
$$;
