-- Shows files that belong to no request (a character's reference picture). p_files: JSON array of app.asset_file.
-- Returns those that were begun and are stored now.
create or replace function app.store_assets(p_files json) returns setof uuid
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  update app.assets a
    set state = 'stored',
        bytes = f.bytes,
        sha256 = decode(f.sha256, 'hex'),
        details = a.details || coalesce(f.details, '{}'),
        expires_at = now() + make_interval(days => f.retention_days),
        sweep_at = now() + make_interval(days => f.retention_days)
    from json_populate_recordset(null::app.asset_file, p_files) f
    where a.id = f.id and a.request_id is null and a.state = 'writing'
    returning a.id
$$;
