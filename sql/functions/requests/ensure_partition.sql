-- Makes one partition of a table that is partitioned by UUID version 7, if it is not there. Rows that came before their
-- partition (an ingress whose clock is ahead, maintenance that stood still) wait in the default partition and are taken over:
-- PostgreSQL refuses a partition while the default one has rows of it.
create or replace function app.ensure_partition(p_parent text, p_name text, p_from timestamptz, p_to timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from uuid := app.uuid_floor(p_from);
  v_to uuid := app.uuid_floor(p_to);
  v_key text;
  v_has_early_rows boolean;
begin
  if to_regclass('app.' || quote_ident(p_name)) is not null then
    return;
  end if;
  select a.attname into v_key
    from pg_partitioned_table t join pg_attribute a on a.attrelid = t.partrelid and a.attnum = t.partattrs[0]
    where t.partrelid = ('app.' || quote_ident(p_parent))::regclass;
  execute format('select exists (select from app.%I where %I >= $1 and %I < $2)', p_parent || '_default', v_key, v_key)
    into v_has_early_rows using v_from, v_to;
  if v_has_early_rows then
    execute format('create temporary table early_rows (like app.%I) on commit drop', p_parent);
    execute format(
      'with early as (delete from app.%I where %I >= $1 and %I < $2 returning *) insert into early_rows select * from early',
      p_parent || '_default', v_key, v_key
    ) using v_from, v_to;
  end if;
  execute format('create table app.%I partition of app.%I for values from (%L) to (%L)', p_name, p_parent, v_from, v_to);
  if p_parent = 'requests' then
    -- each request is updated once or twice: with room on its page no index is touched
    execute format('alter table app.%I set (fillfactor = 70)', p_name);
  end if;
  if v_has_early_rows then
    execute format('insert into app.%I select * from early_rows', p_parent);
    drop table early_rows;
  end if;
end
$$;
