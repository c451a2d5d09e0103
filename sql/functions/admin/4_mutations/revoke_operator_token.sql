-- Revokes an operator's token, once.
create function admin.revoke_operator_token(p_token uuid) returns admin.operator_tokens
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before admin.operator_tokens;
  v_result admin.operator_tokens;
begin
  perform 1 from app.operator_tokens t where t.id = p_token for update;
  select * into v_before from admin.operator_tokens t where t.id = p_token;
  if not found then
    raise exception 'no such token' using errcode = 'no_data_found';
  end if;
  if v_before.revoked_at is not null then
    return v_before;
  end if;
  update app.operator_tokens t set revoked_at = now() where t.id = p_token;
  select * into v_result from admin.operator_tokens t where t.id = p_token;
  perform app.audit(app.current_operator(), 'revoke_operator_token', 'operator_token', p_token::text, to_jsonb(v_before),
    to_jsonb(v_result));
  return v_result;
end
$$;
comment on function admin.revoke_operator_token is '@resultFieldName operatorToken
Revokes an operator''s token at once and for good, one''s own too.';
