-- Gives back AP that a request was charged.
create function admin.refund_request(p_request uuid, p_ap bigint, p_reason text) returns admin.ledger_entries
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_entry bigint;
  v_before admin.requests;
  v_after admin.requests;
  v_result admin.ledger_entries;
begin
  select * into v_before from admin.requests q where q.id = p_request;
  select r.entry_id into v_entry from app.refund_request(p_request, p_ap, p_reason, app.current_operator()) r;
  select * into v_after from admin.requests q where q.id = p_request;
  select * into v_result from admin.ledger_entries l where l.id = v_entry;
  perform app.audit(app.current_operator(), 'refund_request', 'request', p_request::text, to_jsonb(v_before),
    to_jsonb(v_after) || jsonb_build_object('entry', to_jsonb(v_result)));
  return v_result;
end
$$;
comment on function admin.refund_request is '@resultFieldName ledgerEntry
Gives back AP that a request was charged, in part or whole, never more than it cost in all.';
