-- Compares the books with themselves and notes who had them checked, and what was found.
create type admin.ledger_report as (
  accounts bigint, entries bigint, open_holds bigint, stale_holds bigint, drift_ap bigint, is_sound boolean, problems jsonb
);
comment on type admin.ledger_report is 'What a check of the ledger found.';
comment on column admin.ledger_report.accounts is 'How many accounts there are.';
comment on column admin.ledger_report.entries is 'How many ledger entries there are.';
comment on column admin.ledger_report.open_holds is 'How many requests hold AP.';
comment on column admin.ledger_report.stale_holds is 'How many of them are a minute past their deadline.';
comment on column admin.ledger_report.drift_ap is 'AP by which balances and held amounts differ from the entries and holds; 0 when sound.';
comment on column admin.ledger_report.is_sound is 'Whether nothing is wrong.';
comment on column admin.ledger_report.problems is 'Each fault, with the account or request it concerns (at most 100 of a kind).';

create function admin.check_ledger() returns admin.ledger_report
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_result admin.ledger_report;
begin
  select c.accounts, c.entries, c.open_holds, c.stale_holds, c.drift_ap, c.problems = '[]', c.problems
    into v_result from app.ledger_check() c;
  perform app.audit(app.current_operator(), 'check_ledger', 'ledger', 'all', null, to_jsonb(v_result));
  return v_result;
end
$$;
comment on function admin.check_ledger is '@resultFieldName report
Compares balances with entries, held amounts with open holds, and holds with requests.';
