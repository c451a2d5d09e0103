-- What is published or certified does not expire as long as it is. The caller has locked the file's row.
create or replace function app.keep_asset(p_asset uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update app.assets a
    set kept_expires_at = a.expires_at, expires_at = null, sweep_at = null
    where a.id = p_asset and a.expires_at is not null and a.deleted_at is null
$$;
