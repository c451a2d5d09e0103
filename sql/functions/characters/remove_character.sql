-- Takes a character out of use; p_account null: whoever's it is. Its picture goes five minutes later, or when the last request has ended
-- that was submitted by then and may need it (app.due_assets). Returns the character as it was; null where there is none to remove.
create or replace function app.remove_character(p_account uuid, p_character uuid) returns app.characters
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.characters;
begin
  select * into v_before from app.characters c
    where c.id = p_character and c.account_id = coalesce(p_account, c.account_id) and c.removed_at is null
    for update;
  if not found then
    return null;
  end if;
  update app.characters c set removed_at = now() where c.id = p_character;
  perform app.delete_assets(null, array[v_before.reference_asset_id]);
  update app.assets a set sweep_at = a.deleted_at + interval '5 minutes' where a.id = v_before.reference_asset_id and a.purged_at is null;
  return v_before;
end
$$;
