-- Housekeeping: idempotency keys past their 24 hours, cached results past theirs, counters of past periods, page
-- views of more than a year ago. Bounded per call.
-- Returns the rows of the kind that has most left.
create or replace function app.purge_expired(p_limit integer default 5000) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows integer;
  v_cached integer;
begin
  delete from app.idempotency_keys k
    where (k.account_id, k.key) in (
      select o.account_id, o.key from app.idempotency_keys o where o.created_at < now() - interval '24 hours' limit p_limit
    );
  get diagnostics v_rows = row_count;
  delete from app.result_cache c
    where (c.account_id, c.cache_key) in (
      select o.account_id, o.cache_key from app.result_cache o where o.expires_at <= now() limit p_limit
    );
  get diagnostics v_cached = row_count;
  delete from app.cap_usage u where u.period_start::timestamp < (now() - interval '62 days')::date;
  delete from app.page_views v where v.day < (now() - interval '400 days')::date;
  return greatest(v_rows, v_cached);
end
$$;
