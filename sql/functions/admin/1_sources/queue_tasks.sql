-- The queue, counted by task. A function, because a view of ours over the engine's tables would stand in the way of the
-- engine's own migrations. The body is compiled when it is called.
create or replace function app.queue_tasks()
returns table (task text, waiting bigint, scheduled bigint, running bigint, failed bigint, oldest_waiting_at timestamptz)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select j.task_identifier,
           count(*) filter (where j.locked_at is null and j.attempts < j.max_attempts and j.run_at <= now()),
           count(*) filter (where j.locked_at is null and j.attempts < j.max_attempts and j.run_at > now()),
           count(*) filter (where j.locked_at is not null),
           count(*) filter (where j.locked_at is null and j.attempts >= j.max_attempts),
           min(j.run_at) filter (where j.locked_at is null and j.attempts < j.max_attempts and j.run_at <= now())
      from graphile_worker.jobs j
      group by j.task_identifier;
end
$$;
