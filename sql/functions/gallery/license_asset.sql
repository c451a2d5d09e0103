-- The token under which a picture's license is looked up: made when it is first published or certified, the same from then on.
-- p_image: {image_id, model_id, license_token, license_terms}; its token is taken where there is none yet. The caller has locked the
-- file's row.
create or replace function app.license_asset(p_asset app.assets, p_image jsonb) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_token text;
begin
  insert into app.licenses (asset_id, token, image_id, model_id, character_id, terms)
    values (p_asset.id, p_image ->> 'license_token', (p_image ->> 'image_id')::uuid, p_image ->> 'model_id',
            (p_asset.details ->> 'characterId')::uuid, p_image ->> 'license_terms')
    on conflict (asset_id) do nothing;
  select l.token into v_token from app.licenses l where l.asset_id = p_asset.id;
  return v_token;
end
$$;
