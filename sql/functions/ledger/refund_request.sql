-- Gives back AP that a request was charged, in part or whole, never more than it cost in all.
create or replace function app.refund_request(p_request uuid, p_ap bigint, p_reason text, p_actor text)
returns table (entry_id bigint, balance_ap bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_request app.requests;
  v_refunded bigint;
  v_balance bigint;
  v_entry bigint;
begin
  if coalesce(p_ap, 0) <= 0 then
    raise exception 'a refund must be a positive number of AP' using errcode = 'invalid_parameter_value';
  end if;
  perform app.require_reason(p_reason);
  select * into v_request from app.requests q where q.id = p_request;
  if not found then
    raise exception 'no such request' using errcode = 'no_data_found';
  end if;
  -- the balance's lock orders two refunds of one request
  perform 1 from app.balances b where b.account_id = v_request.account_id for update;
  select coalesce(sum(l.amount_ap), 0) into v_refunded
    from app.ledger_entries l where l.request_id = p_request and l.kind = 'refund';
  if p_ap > coalesce(v_request.cost_ap, 0) - v_refunded then
    raise exception 'the request cost % AP, of which % are refunded', coalesce(v_request.cost_ap, 0), v_refunded
      using errcode = 'check_violation';
  end if;
  -- it comes back as purchased: whoever paid is not sent back to the rules of the free grant
  update app.balances b set balance_ap = b.balance_ap + p_ap, purchased_ap = b.purchased_ap + p_ap
    where b.account_id = v_request.account_id
    returning b.balance_ap into v_balance;
  insert into app.ledger_entries (account_id, kind, amount_ap, balance_after_ap, request_id, reason, actor)
    values (v_request.account_id, 'refund', p_ap, v_balance, p_request, p_reason, p_actor)
    returning id into v_entry;
  perform pg_notify('svc_accounts', v_request.account_id::text);
  return query select v_entry, v_balance;
end
$$;
