-- Issues an API key for an account. The secret is made and hashed by the caller; only its hash comes here.
create or replace function app.issue_key(
  p_account uuid, p_secret_hash bytea, p_prefix text, p_hint text, p_name text, p_scopes text[], p_allowed_models text[],
  p_cap_per_request_ap bigint, p_cap_daily_ap bigint, p_cap_monthly_ap bigint, p_rate_per_minute integer,
  p_expires_at timestamptz, p_actor text
) returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key app.keys;
begin
  if not exists (select from app.accounts a where a.id = p_account) then
    raise exception 'no such account' using errcode = 'no_data_found';
  end if;
  perform app.refuse_unknown_models(p_allowed_models);
  insert into app.keys (
    account_id, secret_hash, prefix, hint, name, scopes, allowed_models, cap_per_request_ap, cap_daily_ap, cap_monthly_ap,
    rate_per_minute, expires_at
  ) values (
    p_account, p_secret_hash, p_prefix, p_hint, coalesce(p_name, ''),
    coalesce(p_scopes, array['llm', 'tts', 'images', 'x', 'cert']), p_allowed_models, p_cap_per_request_ap,
    p_cap_daily_ap, p_cap_monthly_ap, coalesce(p_rate_per_minute, 60), p_expires_at
  ) returning * into v_key;
  perform app.audit(p_actor, 'issue_key', 'key', v_key.id::text, null, to_jsonb(v_key) - 'secret_hash');
  return v_key.id;
end
$$;
