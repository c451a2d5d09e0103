-- Up Migration

create function app.refuse_change() returns trigger
language plpgsql
as $$
begin
  raise exception '% rows never change', tg_table_name using errcode = 'restrict_violation';
end
$$;

create trigger _100_ledger_never_changes before update or delete on app.ledger_entries
  for each row execute function app.refuse_change();
create trigger _110_ledger_never_truncated before truncate on app.ledger_entries
  for each statement execute function app.refuse_change();
create trigger _100_audit_never_changes before update or delete on app.audit_log
  for each row execute function app.refuse_change();
create trigger _110_audit_never_truncated before truncate on app.audit_log
  for each statement execute function app.refuse_change();
create trigger _100_prices_never_change before update or delete on app.prices
  for each row execute function app.refuse_change();
