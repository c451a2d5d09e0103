-- Puts AP into an account, or by a negative adjustment takes some out (never more than is available).
-- p_kind: purchase | grant | adjustment. Returns the entry and the balance after it.
create or replace function app.credit_account(p_account uuid, p_ap bigint, p_kind text, p_reason text, p_actor text)
returns table (entry_id bigint, balance_ap bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_balance bigint;
  v_entry bigint;
begin
  if coalesce(p_kind, '') not in ('purchase', 'grant', 'adjustment') then
    raise exception 'kind must be purchase, grant or adjustment' using errcode = 'invalid_parameter_value';
  end if;
  if coalesce(p_ap, 0) = 0 then
    raise exception 'the number of AP must not be 0' using errcode = 'invalid_parameter_value';
  end if;
  if p_ap < 0 and p_kind <> 'adjustment' then
    raise exception 'a % must be a positive number of AP', p_kind using errcode = 'invalid_parameter_value';
  end if;
  perform app.require_reason(p_reason);
  if not exists (select from app.accounts a where a.id = p_account) then
    raise exception 'no such account' using errcode = 'no_data_found';
  end if;

  insert into app.balances (account_id) values (p_account) on conflict do nothing;
  update app.balances b
    set balance_ap = b.balance_ap + p_ap,
        purchased_ap = case
          when p_kind = 'purchase' then b.purchased_ap + p_ap
          else least(b.purchased_ap, b.balance_ap + p_ap)
        end
    where b.account_id = p_account and b.balance_ap - b.held_ap + p_ap >= 0
    returning b.balance_ap into v_balance;
  if not found then
    raise exception 'the adjustment is larger than the available balance' using errcode = 'check_violation';
  end if;
  insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, reason, actor)
    values (p_account, p_kind, p_ap, v_balance, p_reason, p_actor)
    returning id into v_entry;
  perform pg_notify('svc_accounts', p_account::text);
  return query select v_entry, v_balance;
end
$$;
