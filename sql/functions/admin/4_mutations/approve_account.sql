-- Approves an enterprise account, once: a second call keeps the first date and writes nothing.
create function admin.approve_account(p_account uuid) returns admin.accounts
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.accounts;
  v_after app.accounts;
  v_result admin.accounts;
begin
  select * into v_before from app.accounts a where a.id = p_account for update;
  if not found then
    raise exception 'no such account' using errcode = 'no_data_found';
  end if;
  if v_before.kind <> 'enterprise' then
    raise exception 'only enterprise accounts are approved' using errcode = 'invalid_parameter_value';
  end if;
  if v_before.approved_at is null then
    update app.accounts a set approved_at = now() where a.id = p_account returning * into v_after;
    perform app.audit(app.current_operator(), 'approve_account', 'account', p_account::text, to_jsonb(v_before), to_jsonb(v_after));
  end if;
  select * into v_result from admin.accounts a where a.id = p_account;
  return v_result;
end
$$;
comment on function admin.approve_account is '@resultFieldName account
Approves an enterprise account. Approving again changes nothing.';
