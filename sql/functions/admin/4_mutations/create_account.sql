-- Opens an account (app.create_account writes the audit row).
create function admin.create_account(
  p_name text, p_kind admin.account_kind default 'personal', p_subject text default null,
  p_language admin.language default null, p_card_on_file boolean default false
) returns admin.accounts
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid;
  v_result admin.accounts;
begin
  v_id := app.create_account(p_name, p_kind::text, p_subject, p_language::text, p_card_on_file, app.current_operator());
  select * into v_result from admin.accounts a where a.id = v_id;
  return v_result;
end
$$;
comment on function admin.create_account is '@resultFieldName account
Opens an account.';
