-- Takes a character out of use, whoever's it is. Pictures that were made of it stay.
create function admin.remove_character(p_character uuid, p_reason text) returns admin.characters
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before admin.characters;
  v_result admin.characters;
begin
  perform app.require_reason(p_reason);
  select * into v_before from admin.characters c where c.id = p_character;
  if not found then
    raise exception 'no such character' using errcode = 'no_data_found';
  end if;
  perform app.remove_character(null, p_character);
  select * into v_result from admin.characters c where c.id = p_character;
  if v_before.removed_at is null then
    perform app.audit(app.current_operator(), 'remove_character', 'character', p_character::text, to_jsonb(v_before),
      to_jsonb(v_result) || jsonb_build_object('reason', p_reason));
  end if;
  return v_result;
end
$$;
comment on function admin.remove_character is '@resultFieldName character
Takes a character out of use. Pictures that were made of it stay; take those down by takeDownAsset.';
