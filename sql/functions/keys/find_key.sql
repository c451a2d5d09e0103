-- Everything the ingress must know of a key to check a request, but for moving balances. Cached by the ingress until
-- `svc_accounts` tells of a change.
create or replace function app.find_key(p_secret_hash bytea)
returns table (
  key_id uuid, account_id uuid, prefix text, scopes text[], key_models text[], cap_per_request_ap bigint,
  cap_daily_ap bigint, cap_monthly_ap bigint, rate_per_minute integer, expires_at timestamptz, revoked_at timestamptz,
  account_kind text, account_approved boolean, account_models text[], account_created_at timestamptz, language text,
  subject text, card_on_file boolean, had_initial_grant boolean, has_purchased boolean, has_balance boolean
)
language sql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select k.id, a.id, k.prefix, k.scopes, k.allowed_models, k.cap_per_request_ap, k.cap_daily_ap, k.cap_monthly_ap,
         k.rate_per_minute, k.expires_at, k.revoked_at, a.kind, a.approved_at is not null, a.allowed_models, a.created_at,
         a.language, a.subject, a.card_on_file, b.initial_grant_at is not null, coalesce(b.purchased_ap > 0, false),
         coalesce(b.balance_ap > 0, false)
    from app.keys k
    join app.accounts a on a.id = k.account_id
    left join app.balances b on b.account_id = a.id
    where k.secret_hash = p_secret_hash
$$;
