-- Post or void: ends requests, each at most once. Deleting the hold decides who ends a request; whoever comes second
-- changes nothing and is told how it ended.
-- A cost above the hold is cut to the hold; what is not spent returns to the available balance.
-- Balances are locked last, so that others wait for them only as long as the commit takes.
--
-- p_batch: JSON array of app.settlement. Returns a row per known request:
--   is_settled: this call ended it; state, cost_ap: how it stands on the books now.
-- p_ids: its request ids, sorted.
create or replace function app.settle_requests(p_batch json, p_ids uuid[])
returns table (request_id uuid, is_settled boolean, state text, cost_ap bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off -- rows are locked in the order of their ids, not of the table
as $$
#variable_conflict use_column
declare
  v_first uuid := p_ids[1];
  v_last uuid := p_ids[cardinality(p_ids)];
  v_asked bigint;
  v_resolved bigint;
  -- what this call ended
  v_ended app.ended_request[];
  v_accounts uuid[]; -- sorted
  v_charges bigint[]; -- of each of them
  v_holds bigint[];
  v_has_caps boolean;
  v_has_free_keys boolean;
  v_has_inputs boolean;
  -- of those, the ones with files
  v_filed json;
  v_buyers uuid[];
begin
  -- in id order, so that two batches that overlap wait for each other instead of deadlocking
  with item as materialized (
    select distinct on (i.request_id) i.* from json_populate_recordset(null::app.settlement, p_batch) i order by i.request_id
  ), ending as materialized (
    delete from app.holds h
      using item i
      where h.request_id = i.request_id
      returning i.*, least(greatest(coalesce(i.cost_ap, 0), 0), h.amount_ap) as charge_ap
  ), finished as (
    update app.requests q
      set state = e.state,
          cost_ap = e.charge_ap,
          usage = e.usage,
          provider = e.provider,
          error_code = e.error_code,
          -- a provider's words, which may repeat the prompt, go to the caller who waits: this row is for good, and metadata
          error_details = e.error_details - 'provider_message',
          started_at = case
            when e.state = 'succeeded' then coalesce(q.started_at, e.started_at, now())
            else coalesce(q.started_at, e.started_at)
          end,
          finished_at = now()
      from ending e
      where q.id = e.request_id
        -- these rows alone are looked up, whatever the statistics were when the plan was made, and only their partitions opened
        and q.id = any (p_ids) and q.id between v_first and v_last
      returning q.id, q.account_id, q.hold_ap, q.cost_ap, q.state, q.capped_scopes is not null as is_capped, q.idempotency_key
  ), results as (
    insert into app.request_results (request_id, kind, body)
    select e.request_id, e.result_kind, e.result from ending e where e.result is not null
  ), totals as (
    select f.account_id, sum(f.cost_ap)::bigint as charge_ap, sum(f.hold_ap)::bigint as hold_ap
      from finished f group by f.account_id
  )
  select i.count, e.count, e.filed, e.has_inputs, f.rows, f.has_caps, f.has_free_keys, t.accounts, t.charges, t.holds
    into v_asked, v_resolved, v_filed, v_has_inputs, v_ended, v_has_caps, v_has_free_keys, v_accounts, v_charges, v_holds
    from (select count(*) from item) i,
         (
           select count(*),
                  json_agg(e) filter (where e.assets is not null) as filed,
                  bool_or(e.input_is_inline is not true) as has_inputs
             from ending e
         ) e,
         (
           select array_agg(f::app.ended_request) as rows,
                  bool_or(f.is_capped) as has_caps,
                  bool_or(f.idempotency_key is not null and f.state <> 'succeeded') as has_free_keys
             from finished f
         ) f,
         (
           select array_agg(account_id order by account_id) as accounts,
                  array_agg(charge_ap order by account_id) as charges,
                  array_agg(hold_ap order by account_id) as holds
             from totals
         ) t;

  if v_resolved <> coalesce(cardinality(v_ended), 0) then
    raise exception 'holds without a request between % and %', v_first, v_last;
  end if;

  if v_filed is not null then
    perform app.store_results(v_filed);
  end if;
  if v_ended is not null then
    with paid as materialized (
      -- width_bucket finds the account's place among the sorted: a join would compare every account with every other
      update app.balances b
        set balance_ap = b.balance_ap - v_charges[width_bucket(b.account_id, v_accounts)],
            held_ap = b.held_ap - v_holds[width_bucket(b.account_id, v_accounts)],
            purchased_ap = greatest(b.purchased_ap - v_charges[width_bucket(b.account_id, v_accounts)], 0)
        where b.account_id = any (v_accounts) -- never the whole table, whatever its statistics
        returning b.account_id, b.purchased_ap,
                  b.balance_ap + v_charges[width_bucket(b.account_id, v_accounts)] as balance_before_ap
    ), running as (
      -- each account's balance, from what it was on: no join here either
      select m.account_id, m.request_id, m.amount_ap,
             sum(m.amount_ap) over (partition by m.account_id order by m.request_id nulls first) as balance_after_ap
        from (
          select p.account_id, null::uuid as request_id, p.balance_before_ap as amount_ap from paid p
          union all
          select e.account_id, e.id, -e.cost_ap from unnest(v_ended) e where e.cost_ap > 0
        ) m
    ), entries as (
      insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, request_id)
      select r.account_id, 'charge', r.amount_ap, r.balance_after_ap, r.request_id
        from running r where r.request_id is not null
    )
    select array_agg(p.account_id) into v_buyers
      from paid p
      join app.balances before -- as this statement found it
        on before.account_id = p.account_id and before.account_id = any (v_accounts)
      where p.purchased_ap = 0
        -- what came between is not seen here: told once too often is harmless
        and (before.purchased_ap > 0 or before.balance_ap <> p.balance_before_ap);

    if v_buyers is not null then
      -- spending granted AP from here on: other rules apply to the account
      perform pg_notify('svc_accounts', buyer::text) from unnest(v_buyers) buyer;
    end if;
    if v_has_caps then
      perform app.give_back_caps((select array_agg(e.id) from unnest(v_ended) e where e.is_capped));
    end if;
    if v_has_free_keys then
      -- there is no answer to give again: the caller may try anew under the same key
      delete from app.idempotency_keys k
        using unnest(v_ended) e
        where e.state <> 'succeeded' and k.account_id = e.account_id and k.key = e.idempotency_key and k.request_id = e.id;
    end if;
    if v_has_inputs then
      delete from app.request_inputs i using unnest(v_ended) e where i.request_id = e.id;
    end if;
  end if;

  return query select e.id, true, e.state, e.cost_ap from unnest(v_ended) e;
  if v_asked > coalesce(cardinality(v_ended), 0) then
    -- ended before, by somebody else
    return query
      select q.id, false, q.state, q.cost_ap
        from json_populate_recordset(null::app.settlement, p_batch) i
        join app.requests q on q.id = i.request_id
        where not exists (select from unnest(v_ended) e where e.id = i.request_id);
  end if;
end
$$;

-- The same for callers that have no list of the ids; releases before 0008 call it too, while a new one is rolled out.
create or replace function app.settle_requests(p_batch json)
returns table (request_id uuid, is_settled boolean, state text, cost_ap bigint)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.request_id, s.is_settled, s.state, s.cost_ap
    from app.settle_requests(p_batch, (
      select array_agg(i.request_id order by i.request_id) from json_populate_recordset(null::app.settlement, p_batch) i
    )) s
$$;
