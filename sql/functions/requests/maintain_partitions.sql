-- Makes the partitions of the coming time (requests by month, results by day) and drops results past their retention.
-- Retention of results is 24 hours: a day's partition goes when its last row is that old. Safe to run at any time, by anyone.
-- Making and dropping a partition waits for every reader of the table, and everybody else waits behind: so it waits a second at
-- most and fails then, to be run again. Partitions are made days ahead, so that is soon enough.
create or replace function app.maintain_partitions(p_now timestamptz default now()) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
declare
  v_month timestamptz;
  v_day timestamptz;
  v_old record;
begin
  perform pg_advisory_xact_lock(hashtext('app.maintain_partitions'));
  for i in 0..2 loop
    v_month := (date_trunc('month', p_now at time zone 'utc') + make_interval(months => i)) at time zone 'utc';
    perform app.ensure_partition('requests', 'requests_' || to_char(v_month at time zone 'utc', 'YYYY_MM'),
      v_month, (v_month at time zone 'utc' + interval '1 month') at time zone 'utc');
  end loop;
  for i in 0..3 loop
    v_day := (date_trunc('day', p_now at time zone 'utc') + make_interval(days => i)) at time zone 'utc';
    perform app.ensure_partition('request_results', 'request_results_' || to_char(v_day at time zone 'utc', 'YYYY_MM_DD'),
      v_day, (v_day at time zone 'utc' + interval '1 day') at time zone 'utc');
  end loop;
  for v_old in
    select c.relname
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'app.request_results'::regclass and c.relname ~ '_\d{4}_\d\d_\d\d$'
        and (to_date(right(c.relname, 10), 'YYYY_MM_DD') + 2)::timestamp at time zone 'utc' < p_now
  loop
    execute format('drop table app.%I', v_old.relname);
  end loop;
  delete from app.request_results_default r where r.request_id < app.uuid_floor(p_now - interval '24 hours');
end
$$;
