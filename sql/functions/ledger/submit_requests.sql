-- Reserve: for each request of a batch, hold the most it can cost, record it and enqueue its job, or refuse it by itself.
-- All in the caller's one transaction: there is no job without a hold and no hold without a job.
-- Balances are locked in account order, so batches of several ingresses cannot deadlock; that lock also orders
-- everything else that is per account here (idempotency keys, caps, the initial grant).
--
-- p_batch: JSON array of app.submission. p_inputs: JSON array, the job data of the same positions; a request without any gets no job
-- (app.charge_request, which settles it at once).
-- Returns one row per submission, by n:
--   outcome: accepted | insufficient_ap | account_too_new | card_required | request_over_key_cap | user_daily_cap
--            | replay | idempotency_conflict | idempotency_in_progress
--   hold_ap, units: what is held, and for how many units (accepted); required_ap: what would have been needed (refused)
--   other_request_id: the request that holds the idempotency key
create or replace function app.submit_requests(p_batch json, p_inputs json, p_initial_grant_ap bigint)
returns table (
  n integer, outcome text, hold_ap bigint, units bigint, required_ap bigint, available_ap bigint, held_ap bigint,
  cap_ap bigint, resets_at timestamptz, other_request_id uuid
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  c_max_inline_input constant integer := 65536; -- bytes of JSON that may ride in the job's payload
  c_hold_grace constant interval := '30 seconds'; -- after its deadline a request has this long to be settled by its worker
  v_items app.submission[];
  v_item app.submission;
  v_account uuid;
  v_balance bigint;
  v_held bigint;
  v_purchased bigint;
  v_grant bigint;
  v_had_grant boolean;
  v_is_new boolean := false;
  v_is_changed boolean := false;
  v_available bigint;
  v_units bigint;
  v_hold bigint;
  v_cap bigint;
  v_resets_at timestamptz;
  v_other uuid;
  v_outcome text;
  v_scopes text[];
  v_today date := (now() at time zone 'utc')::date;
  v_month date := date_trunc('month', now() at time zone 'utc')::date;
  -- in the order of v_items
  v_answers app.submit_answer[] := '{}';
  -- the balances that changed
  b_account uuid[] := '{}'; b_balance bigint[] := '{}'; b_held bigint[] := '{}'; b_had_grant boolean[] := '{}';
begin
  select array_agg(item order by item.account_id, item.n) into v_items
    from json_populate_recordset(null::app.submission, p_batch) item;

  -- the last turn, of no item, only closes the last account
  foreach v_item in array coalesce(v_items, '{}') || null::app.submission loop
    exit when v_items is null;
    if v_account is distinct from v_item.account_id then
      if v_is_changed then
        b_account := b_account || v_account;
        b_balance := b_balance || v_balance;
        b_held := b_held || v_held;
        b_had_grant := b_had_grant || v_had_grant;
      elsif v_is_new then
        -- nothing was accepted of a new account: a refusal leaves nothing behind
        delete from app.balances b where b.account_id = v_account;
      end if;
      exit when v_item.account_id is null;
      v_account := v_item.account_id;
      v_is_new := false;
      v_is_changed := false;
      loop
        select b.balance_ap, b.held_ap, b.purchased_ap, b.initial_grant_at is not null
          into v_balance, v_held, v_purchased, v_had_grant
          from app.balances b where b.account_id = v_account for update;
        exit when found;
        insert into app.balances (account_id) values (v_account) on conflict do nothing;
        v_is_new := v_is_new or found;
      end loop;
    end if;

    v_grant := case when v_had_grant or not v_item.is_grant_allowed then 0 else p_initial_grant_ap end;
    v_available := v_balance - v_held + v_grant;
    v_outcome := null;
    v_other := null;
    v_cap := null;
    v_resets_at := null;
    v_scopes := null;

    if v_item.idempotency_key is not null then
      select claim.outcome, claim.request_id into v_outcome, v_other
        from app.claim_idempotency_key(
          v_account, v_item.idempotency_key, decode(v_item.body_sha256, 'hex'), v_item.id
        ) claim;
    end if;

    -- the largest number of units the balance can pay for, never above what was asked (units that are free save nothing)
    v_units := v_item.max_units;
    v_hold := app.milli_ap_to_ap(v_item.fixed_milli_ap + v_units * v_item.unit_milli_ap);
    if v_outcome is null and v_hold > v_available and v_item.min_units < v_item.max_units and v_item.unit_milli_ap > 0 then
      v_units := greatest((v_available * 1000 - v_item.fixed_milli_ap) / v_item.unit_milli_ap, v_item.min_units);
      v_hold := app.milli_ap_to_ap(v_item.fixed_milli_ap + v_units * v_item.unit_milli_ap);
    end if;

    if v_outcome is null and v_hold > v_available
       and not v_had_grant and not v_item.is_grant_allowed and v_balance = 0 then
      v_outcome := 'account_too_new';
    end if;

    if v_outcome is null and v_item.needs_purchased and v_purchased <= v_held then
      v_outcome := 'card_required';
    end if;

    if v_outcome is null and (
      v_item.cap_per_request_ap is not null or v_item.cap_daily_ap is not null or v_item.cap_monthly_ap is not null
      or (v_item.grant_daily_cap_ap is not null and v_purchased <= v_held)
    ) then
      select refusal.outcome, refusal.cap_ap, refusal.resets_at, refusal.capped_scopes
        into v_outcome, v_cap, v_resets_at, v_scopes
        from app.count_against_caps(
          v_item, v_hold, v_hold <= v_available, v_purchased <= v_held, v_today, v_month
        ) refusal;
    end if;

    if v_outcome is null and v_hold > v_available then
      v_outcome := 'insufficient_ap';
    end if;

    if v_outcome is null then
      if v_grant > 0 then
        v_balance := v_balance + v_grant;
        v_had_grant := true;
        insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, reason)
          values (v_account, 'initial_grant', v_grant, v_balance, 'initial grant at the first billable call');
      end if;
      v_held := v_held + v_hold;
      v_is_changed := true;
      v_outcome := 'accepted';
    elsif v_item.idempotency_key is not null and v_other is null then
      -- refused: the key is free again
      delete from app.idempotency_keys k where k.account_id = v_account and k.key = v_item.idempotency_key;
    end if;

    v_answers := v_answers || row(
      v_item.n, v_outcome, case v_outcome when 'accepted' then v_hold end, case v_outcome when 'accepted' then v_units end,
      v_hold, v_available,
      case v_outcome when 'accepted' then v_held - v_hold else v_held end, v_cap, v_resets_at, v_other, v_scopes
    )::app.submit_answer;
  end loop;

  if cardinality(b_account) > 0 then
    update app.balances b
      set balance_ap = c.balance,
          held_ap = c.held,
          initial_grant_at = case when c.had_grant then coalesce(b.initial_grant_at, now()) end
      from unnest(b_account, b_balance, b_held, b_had_grant) c(account_id, balance, held, had_grant)
      where b.account_id = c.account_id;

    with accepted as materialized (
      select i.*, a.hold_ap, a.units, a.capped_scopes, now() + make_interval(secs => i.timeout_seconds) as deadline_at
        from unnest(v_items)
          i(n, id, account_id, key_id, area, task, model_id, price_id, is_stream, ingress_id, fixed_milli_ap, unit_milli_ap,
            min_units, max_units, timeout_seconds, idempotency_key, body_sha256, cap_per_request_ap, cap_daily_ap,
            cap_monthly_ap, grant_daily_cap_ap, is_grant_allowed, needs_purchased)
        join unnest(v_answers) a on a.n = i.n
        where a.outcome = 'accepted'
    ), inputs as materialized (
      select input.value, input.n, octet_length(input.value::text) > c_max_inline_input as is_large
        from json_array_elements(p_inputs) with ordinality input(value, n)
    ), new_requests as (
      insert into app.requests (
        id, account_id, key_id, area, task, model_id, price_id, is_stream, hold_ap, idempotency_key, capped_scopes,
        ingress_id, deadline_at
      )
      select id, account_id, key_id, area, task, model_id, price_id, is_stream, hold_ap, idempotency_key, capped_scopes,
             ingress_id, deadline_at
        from accepted
    ), new_holds as (
      insert into app.holds (request_id, account_id, amount_ap, deadline_at)
      select id, account_id, hold_ap, deadline_at + c_hold_grace from accepted
    ), new_inputs as (
      insert into app.request_inputs (request_id, body)
      select a.id, i.value::text from accepted a join inputs i on i.n = a.n where i.is_large
    ), jobs as (
      select array_agg(
        row(
          a.task,
          json_build_object(
            'id', a.id, 'accountId', a.account_id, 'modelId', a.model_id, 'priceId', a.price_id, 'isStream', a.is_stream,
            'ingressId', a.ingress_id, 'holdAp', a.hold_ap, 'units', a.units,
            'createdAtMs', (extract(epoch from now()) * 1000)::bigint,
            'deadlineAtMs', (extract(epoch from a.deadline_at) * 1000)::bigint,
            'input', case when i.is_large then null else i.value end
          ),
          null, null, 10, null, null, null
        )::graphile_worker.job_spec
        order by a.n
      ) as specs
      from accepted a join inputs i on i.n = a.n
    )
    select count(*) into v_hold from jobs, lateral graphile_worker.add_jobs(jobs.specs);
  end if;

  return query
    select a.n, a.outcome, a.hold_ap, a.units, a.required_ap, a.available_ap, a.held_ap, a.cap_ap, a.resets_at, a.other_request_id
      from unnest(v_answers) a
      order by a.n;
end
$$;
