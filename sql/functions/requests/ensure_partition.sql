-- Makes one partition of a table that is partitioned by UUID version 7, if it is not there.
create or replace function app.ensure_partition(p_parent text, p_name text, p_from timestamptz, p_to timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('app.' || quote_ident(p_name)) is null then
    execute format('create table app.%I partition of app.%I for values from (%L) to (%L)',
      p_name, p_parent, app.uuid_floor(p_from), app.uuid_floor(p_to));
  end if;
end
$$;
