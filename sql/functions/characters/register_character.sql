-- Registers a character, and shows its picture to the workers (app.store_assets). p_character: JSON in the columns of app.characters;
-- p_picture: app.asset_file, or null. An account has at most p_max_an_account, and registers as many in 24 hours, those that it has
-- removed again included: a slug is gone for good, whatever becomes of its character.
-- Outcomes: registered | slug_taken | too_many | too_many_a_day | unknown_payee
create or replace function app.register_character(p_character json, p_picture json, p_max_an_account integer) returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new app.characters := json_populate_record(null::app.characters, p_character);
begin
  -- so that two of one account cannot both be the last that is allowed
  perform pg_advisory_xact_lock(hashtext('app.register_character'), hashtext(v_new.account_id::text));
  if (select count(*) from app.characters c where c.account_id = v_new.account_id and c.removed_at is null) >= p_max_an_account then
    return 'too_many';
  end if;
  if (
    select count(*) from (
      select from app.characters c
        where c.account_id = v_new.account_id and c.id >= app.uuid_floor(clock_timestamp() - interval '24 hours')
        limit p_max_an_account
    ) recent
  ) >= p_max_an_account then
    return 'too_many_a_day';
  end if;
  if v_new.payee_account_id is not null and not exists (select from app.accounts a where a.id = v_new.payee_account_id) then
    return 'unknown_payee';
  end if;
  insert into app.characters (
    id, account_id, slug, name_ja, name_en, prompt, reference_asset_id, is_public, payee_account_id, payee_subject, royalty_bps
  ) values (
    v_new.id, v_new.account_id, v_new.slug, v_new.name_ja, v_new.name_en, v_new.prompt, v_new.reference_asset_id, v_new.is_public,
    v_new.payee_account_id, v_new.payee_subject, v_new.royalty_bps
  ) on conflict (slug) do nothing;
  if not found then
    return 'slug_taken';
  end if;
  if p_picture is not null and not exists (select from app.store_assets(json_build_array(p_picture))) then
    raise exception 'the picture of a character was not begun, or belongs to a request' using errcode = 'foreign_key_violation';
  end if;
  return 'registered';
end
$$;
