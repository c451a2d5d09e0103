-- Part of settle_requests: what a capped request held and did not spend counts no longer.
create or replace function app.give_back_caps(p_requests uuid[]) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update app.cap_usage u
    set used_ap = greatest(u.used_ap - g.unspent_ap, 0)
    from (
      select c.subject_id, c.scope, c.period_start, sum(q.hold_ap - q.cost_ap)::bigint as unspent_ap
        from unnest(p_requests) r(id)
        join app.requests q on q.id = r.id -- one by one: an array would be looked up in every partition
        cross join lateral unnest(q.capped_scopes) s(scope)
        cross join lateral (
          select case when s.scope like 'key:%' then q.key_id else q.account_id end as subject_id,
                 s.scope as scope,
                 case when s.scope = 'key:month'
                   then date_trunc('month', q.created_at at time zone 'utc')::date
                   else (q.created_at at time zone 'utc')::date
                 end as period_start
        ) c
        group by c.subject_id, c.scope, c.period_start
    ) g
    where u.subject_id = g.subject_id and u.scope = g.scope and u.period_start = g.period_start
$$;
