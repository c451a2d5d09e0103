-- Part of publish_image and certify_image: a picture of the account's own, locked together with the others of its generation, in the
-- order in which everybody locks them. Null: there is none.
create or replace function app.lock_image(p_asset uuid, p_account uuid) returns app.assets
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_request uuid;
  v_asset app.assets;
begin
  select a.request_id into v_request
    from app.assets a
    where a.id = p_asset and a.account_id = p_account and a.kind = 'image' and a.state = 'stored';
  if found then
    perform from app.assets a where a.request_id = v_request and a.kind = 'image' order by a.id for update;
    select * into v_asset from app.assets a where a.id = p_asset;
  end if;
  return v_asset;
end
$$;
