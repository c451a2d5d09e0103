-- Housekeeping: idempotency keys past their 24 hours, counters of past periods, and inputs nobody will read. Bounded per call.
create or replace function app.purge_expired(p_limit integer default 5000) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows integer;
begin
  delete from app.idempotency_keys k
    where (k.account_id, k.key) in (
      select o.account_id, o.key from app.idempotency_keys o where o.created_at < now() - interval '24 hours' limit p_limit
    );
  get diagnostics v_rows = row_count;
  delete from app.cap_usage u where u.period_start < (now() - interval '62 days')::date;
  return v_rows;
end
$$;
