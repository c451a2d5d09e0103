-- Rows of files that are about to be put. p_assets: JSON array of {id, account_id, request_id, kind, position, content_type, details}.
create or replace function app.begin_assets(p_assets json) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into app.assets (id, account_id, request_id, kind, position, content_type, details)
  select a.id, a.account_id, a.request_id, a.kind, a.position, a.content_type, coalesce(a.details, '{}')
    from json_to_recordset(p_assets)
      a(id uuid, account_id uuid, request_id uuid, kind text, position integer, content_type text, details jsonb)
$$;
