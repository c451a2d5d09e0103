-- Post or void: ends requests, each at most once. Deleting the hold decides who ends a request; whoever comes second
-- changes nothing and is told how it ended.
-- A cost above the hold is cut to the hold; what is not spent returns to the available balance.
--
-- p_batch: JSON array of app.settlement. Returns a row per known request:
--   is_settled: this call ended it; state, cost_ap: how it stands on the books now.
create or replace function app.settle_requests(p_batch json)
returns table (request_id uuid, is_settled boolean, state text, cost_ap bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_items app.settlement[];
  -- the ids lie between these: v_items is sorted
  v_first uuid;
  v_last uuid;
  v_resolved app.resolved_hold[];
  v_buyers uuid[];
  -- what this call ended
  v_ended uuid[];
  v_states text[];
  v_costs bigint[];
  v_scoped uuid[];
  v_unanswered uuid[];
begin
  -- one settlement a request, in id order, so that two batches that overlap wait for each other instead of deadlocking
  select array_agg(item order by item.request_id) into v_items
    from (
      select distinct on (i.request_id) i.* from json_populate_recordset(null::app.settlement, p_batch) i
    ) item;

  v_first := v_items[1].request_id;
  v_last := v_items[cardinality(v_items)].request_id;

  with resolved as (
    delete from app.holds h
      using unnest(v_items) i
      where h.request_id = i.request_id
      returning h.request_id, h.account_id, h.amount_ap
  )
  select array_agg(row(r.request_id, r.account_id, r.amount_ap)::app.resolved_hold) into v_resolved from resolved r;

  if v_resolved is not null then
    -- in account order, as submit_requests locks them
    select array_agg(b.account_id) filter (where b.purchased_ap > 0) into v_buyers
      from (
        select b.account_id, b.purchased_ap
          from app.balances b
          where b.account_id in (select r.account_id from unnest(v_resolved) r)
          order by b.account_id
          for update
      ) b;

    with ending as materialized (
      select i.*, h.account_id, least(greatest(coalesce(i.cost_ap, 0), 0), h.amount_ap) as charge_ap, h.amount_ap
        from unnest(v_resolved) h
        join unnest(v_items) i on i.request_id = h.request_id
    ), totals as (
      select account_id, sum(charge_ap)::bigint as charge_ap, sum(amount_ap)::bigint as hold_ap from ending group by account_id
    ), paid as (
      update app.balances b
        set balance_ap = b.balance_ap - t.charge_ap,
            held_ap = b.held_ap - t.hold_ap,
            purchased_ap = greatest(b.purchased_ap - t.charge_ap, 0)
        from totals t
        where b.account_id = t.account_id
        returning b.account_id, b.balance_ap + t.charge_ap as balance_before_ap
    ), entries as (
      insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, request_id)
      select e.account_id, 'charge', -e.charge_ap,
             p.balance_before_ap - sum(e.charge_ap) over (partition by e.account_id order by e.request_id), e.request_id
        from ending e
        join paid p on p.account_id = e.account_id
        where e.charge_ap > 0
    ), finished as (
      update app.requests q
        set state = e.state,
            cost_ap = e.charge_ap,
            usage = e.usage,
            provider = e.provider,
            error_code = e.error_code,
            error_details = e.error_details,
            started_at = case
              when e.state = 'succeeded' then coalesce(q.started_at, e.started_at, now())
              else coalesce(q.started_at, e.started_at)
            end,
            finished_at = now()
        from ending e
        where q.id = e.request_id and q.id between v_first and v_last -- only their partitions are opened
        returning q.id, q.state, q.cost_ap, q.capped_scopes, q.idempotency_key
    ), results as (
      insert into app.request_results (request_id, kind, body)
      select e.request_id, e.result_kind, e.result from ending e where e.result is not null
    )
    select array_agg(f.id), array_agg(f.state), array_agg(f.cost_ap),
           array_agg(f.id) filter (where f.capped_scopes is not null),
           array_agg(f.id) filter (where f.idempotency_key is not null and f.state <> 'succeeded')
      into v_ended, v_states, v_costs, v_scoped, v_unanswered
      from finished f;

    if exists (select from unnest(v_items) i where i.assets is not null) then
      perform app.store_results(v_items, v_ended);
    end if;
    if v_scoped is not null then
      perform app.give_back_caps(v_scoped);
    end if;
    if v_unanswered is not null then
      -- there is no answer to give again: the caller may try anew under the same key
      delete from app.idempotency_keys k
        using app.requests q
        where q.id = any (v_unanswered) and k.account_id = q.account_id and k.key = q.idempotency_key
          and k.request_id = q.id;
    end if;
    if v_buyers is not null then
      -- spending granted AP from here on: other rules apply to the account
      perform pg_notify('svc_accounts', b.account_id::text)
        from app.balances b where b.account_id = any (v_buyers) and b.purchased_ap = 0;
    end if;
    delete from app.request_inputs i using unnest(v_resolved) r where i.request_id = r.request_id;
  end if;

  return query select e.id, true, e.state, e.cost_ap from unnest(v_ended, v_states, v_costs) e(id, state, cost_ap);
  if cardinality(v_items) > coalesce(cardinality(v_ended), 0) then
    -- ended before, by somebody else
    return query
      select q.id, false, q.state, q.cost_ap
        from unnest(v_items) i
        join app.requests q on q.id = i.request_id
        where i.request_id <> all (coalesce(v_ended, '{}'));
  end if;
end
$$;
