-- Part of submit_requests: refuses a hold that would pass a cap of its key or its account, else counts it.
-- Holds count in full while they are open; settling gives back what was not spent.
-- p_is_affordable: the balance pays for the hold; if not, the caps are looked at (they come before the balance in the order
-- of checks) and nothing is counted.
-- outcome: null (within every cap) | request_over_key_cap | user_daily_cap
create or replace function app.count_against_caps(
  p_item app.submission, p_hold_ap bigint, p_is_affordable boolean, p_is_grant_funded boolean, p_today date, p_month date
) returns table (outcome text, cap_ap bigint, resets_at timestamptz, capped_scopes text[])
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  c_area_scope constant text := 'account:' || p_item.area || ':day';
  c_next_day constant timestamptz := (p_today + 1)::timestamp at time zone 'utc';
  c_next_month constant timestamptz := (p_month + interval '1 month') at time zone 'utc';
  v_scopes text[];
begin
  if p_hold_ap > p_item.cap_per_request_ap then
    return query select 'request_over_key_cap', p_item.cap_per_request_ap, null::timestamptz, null::text[];
    return;
  end if;
  if p_item.cap_daily_ap is null and p_item.cap_monthly_ap is null
     and (p_item.grant_daily_cap_ap is null or not p_is_grant_funded) then
    return query select null::text, null::bigint, null::timestamptz, null::text[];
    return;
  end if;

  if app.cap_used(p_item.key_id, 'key:day', p_today) + p_hold_ap > p_item.cap_daily_ap then
    return query select 'request_over_key_cap', p_item.cap_daily_ap, c_next_day, null::text[];
    return;
  end if;
  if app.cap_used(p_item.key_id, 'key:month', p_month) + p_hold_ap > p_item.cap_monthly_ap then
    return query select 'request_over_key_cap', p_item.cap_monthly_ap, c_next_month, null::text[];
    return;
  end if;
  if p_is_grant_funded
     and app.cap_used(p_item.account_id, c_area_scope, p_today) + p_hold_ap > p_item.grant_daily_cap_ap then
    return query select 'user_daily_cap', p_item.grant_daily_cap_ap, c_next_day, null::text[];
    return;
  end if;
  if not p_is_affordable then
    return query select null::text, null::bigint, null::timestamptz, null::text[];
    return;
  end if;

  with counted as (
    insert into app.cap_usage as u (subject_id, scope, period_start, used_ap)
    select c.subject_id, c.scope, c.period_start, p_hold_ap
      from (values
        (p_item.key_id, 'key:day', p_today, p_item.cap_daily_ap is not null),
        (p_item.key_id, 'key:month', p_month, p_item.cap_monthly_ap is not null),
        (p_item.account_id, c_area_scope, p_today, p_item.grant_daily_cap_ap is not null and p_is_grant_funded)
      ) c(subject_id, scope, period_start, is_counted)
      where c.is_counted
    on conflict (subject_id, scope, period_start) do update set used_ap = u.used_ap + excluded.used_ap
    returning u.scope
  )
  select array_agg(scope) into v_scopes from counted;
  return query select null::text, null::bigint, null::timestamptz, v_scopes;
end
$$;
