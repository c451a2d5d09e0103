-- Opens an account. Returns its id.
create or replace function app.create_account(
  p_name text, p_kind text, p_subject text, p_language text, p_card_on_file boolean, p_actor text
) returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_account app.accounts;
begin
  insert into app.accounts (name, kind, subject, language, card_on_file)
    values (p_name, coalesce(p_kind, 'personal'), p_subject, p_language, coalesce(p_card_on_file, false))
    returning * into v_account;
  perform app.audit(p_actor, 'create_account', 'account', v_account.id::text, null, to_jsonb(v_account));
  return v_account.id;
end
$$;
