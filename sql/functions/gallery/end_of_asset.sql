-- Why a file cannot be shown any more; null: it can. By the clock: its row may have been waited for since the transaction began.
create or replace function app.end_of_asset(p_asset app.assets) returns text
language sql volatile
set search_path = pg_catalog, pg_temp
return case
  when p_asset.id is null then 'not_found'
  when p_asset.deleted_at is not null then 'gone'
  when p_asset.expires_at <= clock_timestamp() then 'expired'
end;
