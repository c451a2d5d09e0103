-- Why a file cannot be shown any more; null: it can.
create or replace function app.end_of_asset(p_asset app.assets) returns text
language sql stable
set search_path = pg_catalog, pg_temp
return case
  when p_asset.id is null then 'not_found'
  when p_asset.deleted_at is not null then 'gone'
  when p_asset.expires_at <= now() then 'expired'
end;
