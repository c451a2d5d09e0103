-- Notes that requests have begun. Their state says so to pollers; whether a task may be repeated depends on it.
create or replace function app.mark_running(p_requests uuid[]) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
  update app.requests q set state = 'running', started_at = now()
    where q.id = any (p_requests) and q.state = 'queued'
$$;
