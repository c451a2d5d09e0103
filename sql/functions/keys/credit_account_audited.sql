-- credit_account for people: the same, with a line in the audit log.
create or replace function app.credit_account_audited(
  p_account uuid, p_ap bigint, p_kind text, p_reason text, p_actor text
) returns table (entry_id bigint, balance_ap bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  select c.entry_id, c.balance_ap into strict entry_id, balance_ap
    from app.credit_account(p_account, p_ap, p_kind, p_reason, p_actor) c;
  perform app.audit(p_actor, 'credit_account', 'account', p_account::text,
    jsonb_build_object('balance_ap', balance_ap - p_ap),
    jsonb_build_object('balance_ap', balance_ap, 'entry_id', entry_id, 'ap', p_ap, 'kind', p_kind, 'reason', p_reason));
  return next;
end
$$;
