-- Puts AP into an account, or by a negative adjustment takes some out (app.credit_account_audited writes the audit row).
create function admin.grant_ap(p_account uuid, p_ap bigint, p_kind admin.grant_kind, p_reason text)
returns admin.ledger_entries
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_entry bigint;
  v_result admin.ledger_entries;
begin
  select c.entry_id into v_entry
    from app.credit_account_audited(p_account, p_ap, p_kind::text, p_reason, app.current_operator()) c;
  select * into v_result from admin.ledger_entries l where l.id = v_entry;
  return v_result;
end
$$;
comment on function admin.grant_ap is '@resultFieldName ledgerEntry
Puts AP into an account: bought, given, or a correction. An adjustment may be negative, down to what is available.';
