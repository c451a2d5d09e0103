-- Requests within a time, newest first. Ids begin with the time, so both ends are found in the primary key, whatever else is
-- asked; the time bounds what is read. A plain SQL function, so that PostgreSQL inlines it and a page reads only its rows
-- (hence neither a SET clause nor app.uuid_floor, which operators may not execute).
create function admin.search_requests(
  p_from timestamptz, p_to timestamptz default null, p_state admin.request_state default null, p_area text default null,
  p_account uuid default null, p_model text default null, p_error_code text default null
) returns setof admin.requests
language sql stable
as $$
  select q.* from admin.requests q
    where q.id >= (lpad(to_hex((extract(epoch from p_from) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
      and q.id < (lpad(to_hex((extract(epoch from coalesce(p_to, now() + interval '1 day')) * 1000)::bigint), 12, '0')
                  || '00000000000000000000')::uuid
      and (p_state is null or q.state = p_state::text)
      and (p_area is null or q.area = p_area)
      and (p_account is null or q.account_id = p_account)
      and (p_model is null or q.model_id = p_model)
      and (p_error_code is null or q.error_code = p_error_code)
    order by q.id desc
$$;
comment on function admin.search_requests is
  'Requests made from a time on (and before another), newest first, by state, area, account, model or error code.';
