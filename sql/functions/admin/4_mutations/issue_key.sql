-- Issues an API key (app.issue_key writes the audit row). Called by the issueKey mutation of admin-graphql, which makes the
-- secret and shows it once: only its hash comes here.
create function admin.issue_key(
  p_account uuid, p_secret_hash bytea, p_prefix text, p_hint text, p_name text, p_scopes text[], p_allowed_models text[],
  p_cap_per_request_ap bigint, p_cap_daily_ap bigint, p_cap_monthly_ap bigint, p_rate_per_minute integer,
  p_expires_at timestamptz
) returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return app.issue_key(p_account, p_secret_hash, p_prefix, p_hint, p_name, p_scopes, p_allowed_models, p_cap_per_request_ap,
    p_cap_daily_ap, p_cap_monthly_ap, p_rate_per_minute, p_expires_at, app.current_operator());
end
$$;
comment on function admin.issue_key is '@behavior -*';
