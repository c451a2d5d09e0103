-- A request's charge and refunds: two unions, because the ledger's indexes by request are one for each kind.
create function admin.requests_ledger_entries(p_request admin.requests) returns setof admin.ledger_entries
language sql stable
as $$
  select l.* from admin.ledger_entries l where l.request_id = p_request.id and l.kind = 'charge'
  union all
  select l.* from admin.ledger_entries l where l.request_id = p_request.id and l.kind = 'refund'
$$;
comment on function admin.requests_ledger_entries is 'Its charge, and its refunds.';
