-- Notes that requests have begun. Their state says so to pollers; whether a task may be repeated depends on it.
-- It never waits for a row: one that is locked is being ended at this moment, and waiting in another order than settling
-- locks its rows would be a deadlock.
create or replace function app.mark_running(p_requests uuid[]) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
  with due as materialized (
    select q.id from app.requests q
      where q.id = any (p_requests) and q.state = 'queued'
      for no key update skip locked
  )
  update app.requests q set state = 'running', started_at = now()
    from due where q.id = due.id
$$;
