-- Issues a token for the admin GraphQL. The secret is made and hashed by the caller; only its hash comes here.
create or replace function app.issue_operator_token(p_name text, p_role text, p_secret_hash bytea, p_actor text) returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_token app.operator_tokens;
begin
  insert into app.operator_tokens (name, role, secret_hash) values (p_name, p_role, p_secret_hash) returning * into v_token;
  perform app.audit(p_actor, 'issue_operator_token', 'operator_token', v_token.id::text, null,
    to_jsonb(v_token) - 'secret_hash');
  return v_token.id;
end
$$;
