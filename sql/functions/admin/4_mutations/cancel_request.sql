-- Ends a request that is not finished and returns everything it held. What the provider still answers is dropped.
create function admin.cancel_request(p_request uuid) returns admin.requests
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before admin.requests;
  v_ended record;
  v_result admin.requests;
begin
  select * into v_before from admin.requests q where q.id = p_request;
  select c.is_settled, c.state into v_ended from app.cancel_request(p_request, null) c;
  if not found then
    raise exception 'no such request' using errcode = 'no_data_found';
  end if;
  if not v_ended.is_settled then
    raise exception 'the request has already ended: %', v_ended.state using errcode = 'object_not_in_prerequisite_state';
  end if;
  select * into v_result from admin.requests q where q.id = p_request;
  perform app.audit(app.current_operator(), 'cancel_request', 'request', p_request::text, to_jsonb(v_before), to_jsonb(v_result));
  return v_result;
end
$$;
comment on function admin.cancel_request is '@resultFieldName request
Ends a request that is queued or running and returns what it held.';
