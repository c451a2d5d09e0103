-- Jobs that have used up their attempts and lie in the queue until an operator retries or forgets them. Without their
-- payloads, which can hold what a caller wrote.
create or replace function app.failed_jobs()
returns table (
  id bigint, task text, attempts integer, max_attempts integer, last_error text, created_at timestamptz, failed_at timestamptz
)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select j.id, j.task_identifier, j.attempts::integer, j.max_attempts::integer, left(j.last_error, 500), j.created_at, j.updated_at
      from graphile_worker.jobs j
      where j.locked_at is null and j.attempts >= j.max_attempts;
end
$$;
