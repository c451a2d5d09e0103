-- Void by the caller or an operator: returns everything held. A finished request is left as it is.
-- p_account null: any account (operators). Returns no row where there is no such request.
create or replace function app.cancel_request(p_request uuid, p_account uuid)
returns table (request_id uuid, is_settled boolean, state text, cost_ap bigint)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.request_id, s.is_settled, s.state, s.cost_ap
    from app.requests q
    cross join lateral app.settle_requests(
      json_build_array(json_build_object('request_id', q.id, 'state', 'cancelled', 'cost_ap', 0))
    ) s
    where q.id = p_request and (p_account is null or q.account_id = p_account)
$$;
