-- Up Migration

create table app.accounts (
  id uuid primary key default gen_random_uuid(),
  name text not null,
  kind text not null default 'personal',
  -- the user (token `sub`) this account belongs to
  subject text,
  language text,
  card_on_file boolean not null default false,
  -- enterprise accounts wait for an operator
  approved_at timestamptz,
  -- null: every model
  allowed_models text[],
  created_at timestamptz not null default now(),
  constraint name_is_not_empty check (length(name) between 1 and 200),
  constraint kind_is_known check (kind in ('personal', 'enterprise')),
  constraint language_is_known check (language in ('en', 'ja')),
  constraint subject_belongs_to_one_account unique (subject)
);

-- Hot and small, hence apart from accounts; changed by the ledger functions only.
create table app.balances (
  account_id uuid primary key references app.accounts,
  balance_ap bigint not null default 0,
  held_ap bigint not null default 0,
  -- the part of the balance that was bought; it is spent before granted AP
  purchased_ap bigint not null default 0,
  initial_grant_at timestamptz,
  -- amounts are exact integers for every client of the database: up to 2^53
  constraint balance_is_an_exact_integer check (balance_ap <= 9007199254740991),
  constraint balance_not_negative check (balance_ap >= 0),
  constraint held_not_negative check (held_ap >= 0),
  constraint hold_not_above_balance check (held_ap <= balance_ap),
  constraint purchased_within_balance check (purchased_ap between 0 and balance_ap)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

create table app.keys (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references app.accounts,
  -- SHA-256 of the whole secret; secrets carry 256 random bits, so no salt or stretching is needed
  secret_hash bytea not null,
  prefix text not null,
  -- the last four characters, for people to tell keys apart
  hint text not null,
  name text not null default '',
  scopes text[] not null,
  allowed_models text[],
  cap_per_request_ap bigint,
  cap_daily_ap bigint,
  cap_monthly_ap bigint,
  rate_per_minute integer not null default 60,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint secret_is_unique unique (secret_hash),
  constraint secret_hash_is_sha256 check (octet_length(secret_hash) = 32),
  constraint prefix_is_known check (prefix in ('svc_live_', 'svc_test_', 'svc_beta_')),
  constraint scopes_are_known check (scopes <@ array['llm', 'tts', 'images', 'x', 'cert']),
  constraint caps_not_negative check (
    coalesce(cap_per_request_ap, 0) >= 0 and coalesce(cap_daily_ap, 0) >= 0 and coalesce(cap_monthly_ap, 0) >= 0
  ),
  constraint rate_is_positive check (rate_per_minute > 0)
);
create index keys_by_account on app.keys (account_id);

-- What capped keys and capped accounts used in a period: holds count in full until they are settled.
create table app.cap_usage (
  -- a key, or an account
  subject_id uuid not null,
  -- 'key:day', 'key:month', 'account:<area>:day'
  scope text not null,
  period_start date not null,
  used_ap bigint not null default 0,
  primary key (subject_id, scope, period_start),
  constraint used_not_negative check (used_ap >= 0)
) with (fillfactor = 70);

-- An operator's token for the admin GraphQL.
create table app.operator_tokens (
  id uuid primary key default gen_random_uuid(),
  name text not null,
  role text not null,
  secret_hash bytea not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  constraint operator_secret_is_unique unique (secret_hash),
  constraint operator_secret_hash_is_sha256 check (octet_length(secret_hash) = 32),
  constraint role_is_known check (role in ('reader', 'operator')),
  constraint operator_name_is_not_empty check (length(name) between 1 and 200)
);

create table app.audit_log (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  -- who: an operator token's name and id, or 'cli'
  actor text not null,
  action text not null,
  target_type text not null,
  target_id text not null,
  before jsonb,
  after jsonb
);
create index audit_by_target on app.audit_log (target_type, target_id, id);
