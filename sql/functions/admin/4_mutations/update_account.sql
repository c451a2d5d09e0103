-- Changes the columns that p_patch names; null clears one. Called by the updateAccount mutation of admin-graphql, whose input
-- type says which columns there are.
create function admin.update_account(p_account uuid, p_patch jsonb) returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.accounts;
  v_wanted app.accounts;
  v_after app.accounts;
begin
  select * into v_before from app.accounts a where a.id = p_account for update;
  if not found then
    raise exception 'no such account' using errcode = 'no_data_found';
  end if;
  v_wanted := jsonb_populate_record(v_before, p_patch);
  if v_wanted is not distinct from v_before then
    return p_account;
  end if;
  if p_patch ? 'allowed_models' then
    perform app.refuse_unknown_models(v_wanted.allowed_models);
  end if;
  update app.accounts a
    set name = v_wanted.name,
        subject = v_wanted.subject,
        language = v_wanted.language,
        card_on_file = v_wanted.card_on_file,
        allowed_models = v_wanted.allowed_models
    where a.id = p_account
    returning * into v_after;
  perform app.audit(app.current_operator(), 'update_account', 'account', p_account::text, to_jsonb(v_before), to_jsonb(v_after));
  return p_account;
end
$$;
comment on function admin.update_account is '@behavior -*';
