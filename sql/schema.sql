-- Written by `node bin/dump-schema.ts` from an empty database after all migrations: read it, do not edit or run it.

-- Schemas

create schema admin;
create schema app;

-- Types

create type admin.account_kind as enum ('personal', 'enterprise');

create type admin.grant_kind as enum ('purchase', 'grant', 'adjustment');

create type admin.language as enum ('en', 'ja');

create type admin.ledger_report as (
  accounts bigint,
  entries bigint,
  open_holds bigint,
  stale_holds bigint,
  drift_ap bigint,
  is_sound boolean,
  problems jsonb
);

create type admin.price_unit as enum ('per_1k_tokens', 'per_1k_characters', 'per_10_seconds', 'per_image', 'per_second', 'per_call');

create type admin.request_state as enum ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired');

create type app.asset_file as (
  id uuid,
  bytes bigint,
  sha256 text,
  details jsonb,
  retention_days integer
);

create type app.ended_request as (
  id uuid,
  account_id uuid,
  hold_ap bigint,
  cost_ap bigint,
  state text,
  is_capped boolean,
  idempotency_key text
);

create type app.funded_submission as (
  n integer,
  id uuid,
  account_id uuid,
  key_id uuid,
  area text,
  task text,
  model_id text,
  price_id bigint,
  is_stream boolean,
  ingress_id uuid,
  hold_ap bigint,
  timeout_seconds integer,
  is_grant_allowed boolean
);

create type app.resolved_hold as (
  request_id uuid,
  account_id uuid,
  amount_ap bigint
);

create type app.settlement as (
  request_id uuid,
  state text,
  cost_ap bigint,
  usage jsonb,
  provider text,
  error_code text,
  error_details jsonb,
  started_at timestamp with time zone,
  result_kind text,
  result text,
  assets json,
  cache_key text,
  input_is_inline boolean
);

create type app.submission as (
  n integer,
  id uuid,
  account_id uuid,
  key_id uuid,
  area text,
  task text,
  model_id text,
  price_id bigint,
  is_stream boolean,
  ingress_id uuid,
  fixed_milli_ap bigint,
  unit_milli_ap bigint,
  min_units bigint,
  max_units bigint,
  timeout_seconds integer,
  idempotency_key text,
  body_sha256 text,
  cap_per_request_ap bigint,
  cap_daily_ap bigint,
  cap_monthly_ap bigint,
  grant_daily_cap_ap bigint,
  is_grant_allowed boolean,
  needs_purchased boolean
);

create type app.submit_answer as (
  n integer,
  outcome text,
  hold_ap bigint,
  units bigint,
  required_ap bigint,
  available_ap bigint,
  held_ap bigint,
  cap_ap bigint,
  resets_at timestamp with time zone,
  other_request_id uuid,
  capped_scopes text[]
);

-- Tables

create table app.accounts (
  id uuid default gen_random_uuid() not null,
  name text not null,
  kind text default 'personal'::text not null,
  subject text,
  language text,
  card_on_file boolean default false not null,
  approved_at timestamp with time zone,
  allowed_models text[],
  created_at timestamp with time zone default now() not null,
  constraint accounts_pkey PRIMARY KEY (id),
  constraint subject_belongs_to_one_account UNIQUE (subject),
  constraint kind_is_known CHECK (kind = ANY (ARRAY['personal'::text, 'enterprise'::text])),
  constraint language_is_known CHECK (language = ANY (ARRAY['en'::text, 'ja'::text])),
  constraint name_is_not_empty CHECK (length(name) >= 1 AND length(name) <= 200)
);

create table app.announcements (
  id bigint generated always as identity not null,
  published_at timestamp with time zone default now() not null,
  kind text not null,
  title_en text not null,
  title_ja text not null,
  body_en text not null,
  body_ja text not null,
  price_id bigint,
  constraint announcements_pkey PRIMARY KEY (id),
  constraint announcements_price_id_fkey FOREIGN KEY (price_id) REFERENCES app.prices(id),
  constraint announcement_kind_is_known CHECK (kind = ANY (ARRAY['price'::text, 'notice'::text]))
);

create table app.assets (
  id uuid not null,
  account_id uuid not null,
  request_id uuid,
  kind text not null,
  "position" integer default 0 not null,
  content_type text not null,
  bytes bigint,
  sha256 bytea,
  details jsonb default '{}'::jsonb not null,
  state text default 'writing'::text not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  deleted_at timestamp with time zone,
  purged_at timestamp with time zone,
  sweep_at timestamp with time zone default (now() + '01:00:00'::interval),
  is_selected boolean default false not null,
  kept_expires_at timestamp with time zone,
  constraint assets_pkey PRIMARY KEY (id),
  constraint asset_bytes_not_negative CHECK (bytes >= 0),
  constraint asset_content_type_is_one CHECK (content_type ~ '^[a-z]+/[a-z0-9.+-]+$'::text),
  constraint asset_kind_is_known CHECK (kind = ANY (ARRAY['image'::text, 'audio'::text, 'video'::text, 'input'::text, 'partial'::text, 'character'::text, 'preview'::text])),
  constraint asset_names_its_request CHECK (request_id IS NOT NULL OR kind = 'character'::text),
  constraint asset_position_not_negative CHECK ("position" >= 0),
  constraint asset_sha256_is_sha256 CHECK (octet_length(sha256) = 32),
  constraint asset_state_is_known CHECK (state = ANY (ARRAY['writing'::text, 'stored'::text])),
  constraint asset_that_ends_is_swept CHECK (
CASE
    WHEN purged_at IS NOT NULL THEN sweep_at IS NULL
    ELSE sweep_at IS NOT NULL OR state = 'stored'::text AND expires_at IS NULL AND deleted_at IS NULL
END),
  constraint kept_asset_does_not_expire CHECK (kept_expires_at IS NULL OR expires_at IS NULL),
  constraint only_stored_assets_end CHECK (state = 'stored'::text OR expires_at IS NULL AND deleted_at IS NULL AND purged_at IS NULL),
  constraint purged_asset_has_ended CHECK (purged_at IS NULL OR deleted_at IS NOT NULL OR expires_at IS NOT NULL),
  constraint stored_asset_is_measured CHECK (state <> 'stored'::text OR bytes IS NOT NULL AND sha256 IS NOT NULL)
);

create table app.audit_log (
  id bigint generated always as identity not null,
  at timestamp with time zone default now() not null,
  actor text not null,
  action text not null,
  target_type text not null,
  target_id text not null,
  before jsonb,
  after jsonb,
  constraint audit_log_pkey PRIMARY KEY (id)
);

create table app.balances (
  account_id uuid not null,
  balance_ap bigint default 0 not null,
  held_ap bigint default 0 not null,
  purchased_ap bigint default 0 not null,
  initial_grant_at timestamp with time zone,
  constraint balances_pkey PRIMARY KEY (account_id),
  constraint balances_account_id_fkey FOREIGN KEY (account_id) REFERENCES app.accounts(id),
  constraint balance_is_an_exact_integer CHECK (balance_ap <= '9007199254740991'::bigint),
  constraint balance_not_negative CHECK (balance_ap >= 0),
  constraint held_not_negative CHECK (held_ap >= 0),
  constraint hold_not_above_balance CHECK (held_ap <= balance_ap),
  constraint purchased_within_balance CHECK (purchased_ap >= 0 AND purchased_ap <= balance_ap)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

create table app.cap_usage (
  subject_id uuid not null,
  scope text not null,
  period_start date not null,
  used_ap bigint default 0 not null,
  constraint cap_usage_pkey PRIMARY KEY (subject_id, scope, period_start),
  constraint used_not_negative CHECK (used_ap >= 0)
) with (fillfactor=70);

create table app.certs (
  cert_id uuid not null,
  entry_id text not null,
  source text not null,
  status text not null,
  title text,
  holder_name text,
  event text,
  issued_on date,
  details jsonb default '{}'::jsonb not null,
  notify_email text,
  asset_id uuid,
  image_id uuid,
  cert_image_url text,
  issuer_account_id uuid not null,
  issuer_key_id uuid not null,
  charge_request_id uuid,
  record_sha256 bytea,
  created_at timestamp with time zone default now() not null,
  constraint certs_pkey PRIMARY KEY (cert_id),
  constraint entry_certified_once UNIQUE (entry_id),
  constraint certs_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.assets(id),
  constraint certs_issuer_account_id_fkey FOREIGN KEY (issuer_account_id) REFERENCES app.accounts(id),
  constraint certs_issuer_key_id_fkey FOREIGN KEY (issuer_key_id) REFERENCES app.keys(id),
  constraint cert_names_its_image CHECK ((asset_id IS NULL) = (image_id IS NULL)),
  constraint cert_record_sha256_is_sha256 CHECK (octet_length(record_sha256) = 32),
  constraint cert_source_is_known CHECK (source = ANY (ARRAY['award'::text, 'create'::text, 'permit'::text, 'lecture'::text, 'contest'::text])),
  constraint cert_status_is_known CHECK (status = ANY (ARRAY['pending'::text, 'issued'::text, 'approved'::text, 'revoked'::text])),
  constraint issued_cert_has_a_record CHECK ((status <> ALL (ARRAY['issued'::text, 'approved'::text])) OR record_sha256 IS NOT NULL AND issued_on IS NOT NULL)
);

create table app.characters (
  id uuid not null,
  account_id uuid not null,
  slug text not null,
  name_ja text not null,
  name_en text not null,
  prompt text not null,
  reference_asset_id uuid,
  is_public boolean default false not null,
  payee_account_id uuid,
  payee_subject text,
  royalty_bps integer default 0 not null,
  created_at timestamp with time zone default now() not null,
  removed_at timestamp with time zone,
  constraint characters_pkey PRIMARY KEY (id),
  constraint character_slug_is_unique UNIQUE (slug),
  constraint characters_account_id_fkey FOREIGN KEY (account_id) REFERENCES app.accounts(id),
  constraint characters_payee_account_id_fkey FOREIGN KEY (payee_account_id) REFERENCES app.accounts(id),
  constraint characters_reference_asset_id_fkey FOREIGN KEY (reference_asset_id) REFERENCES app.assets(id),
  constraint character_has_one_payee CHECK (num_nonnulls(payee_account_id, payee_subject) <= 1),
  constraint character_names_are_short CHECK (length(name_ja) >= 1 AND length(name_ja) <= 200 AND length(name_en) >= 1 AND length(name_en) <= 200),
  constraint character_prompt_is_short CHECK (length(prompt) >= 1 AND length(prompt) <= 4000),
  constraint character_slug_is_a_word CHECK (slug ~ '^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$'::text AND slug !~ '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$'::text),
  constraint royalty_has_a_payee CHECK (royalty_bps = 0 OR num_nonnulls(payee_account_id, payee_subject) = 1),
  constraint royalty_is_a_share CHECK (royalty_bps >= 0 AND royalty_bps <= 10000)
);

create table app.gallery_items (
  asset_id uuid not null,
  image_id uuid not null,
  account_id uuid not null,
  request_id uuid not null,
  model_id text not null,
  character_id uuid,
  charge_request_id uuid not null,
  published_at timestamp with time zone not null,
  withdrawn_at timestamp with time zone,
  constraint gallery_items_pkey PRIMARY KEY (asset_id),
  constraint gallery_items_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.assets(id),
  constraint gallery_items_character_id_fkey FOREIGN KEY (character_id) REFERENCES app.characters(id),
  constraint not_withdrawn_before_published CHECK (withdrawn_at >= published_at)
);

create table app.gallery_totals (
  character_id uuid not null,
  items bigint not null,
  constraint gallery_totals_pkey PRIMARY KEY (character_id),
  constraint gallery_total_not_negative CHECK (items >= 0)
) with (fillfactor=50);

create table app.holds (
  request_id uuid not null,
  account_id uuid not null,
  amount_ap bigint not null,
  deadline_at timestamp with time zone not null,
  constraint holds_pkey PRIMARY KEY (request_id),
  constraint hold_amount_not_negative CHECK (amount_ap >= 0)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000);

create table app.idempotency_keys (
  account_id uuid not null,
  key text not null,
  body_hash bytea not null,
  request_id uuid not null,
  created_at timestamp with time zone default now() not null,
  constraint idempotency_keys_pkey PRIMARY KEY (account_id, key),
  constraint idempotency_key_is_short CHECK (length(key) >= 1 AND length(key) <= 255)
);

create table app.keys (
  id uuid default gen_random_uuid() not null,
  account_id uuid not null,
  secret_hash bytea not null,
  prefix text not null,
  hint text not null,
  name text default ''::text not null,
  scopes text[] not null,
  allowed_models text[],
  cap_per_request_ap bigint,
  cap_daily_ap bigint,
  cap_monthly_ap bigint,
  rate_per_minute integer default 60 not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint keys_pkey PRIMARY KEY (id),
  constraint secret_is_unique UNIQUE (secret_hash),
  constraint keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES app.accounts(id),
  constraint caps_not_negative CHECK (COALESCE(cap_per_request_ap, 0::bigint) >= 0 AND COALESCE(cap_daily_ap, 0::bigint) >= 0 AND COALESCE(cap_monthly_ap, 0::bigint) >= 0),
  constraint prefix_is_known CHECK (prefix = ANY (ARRAY['svc_live_'::text, 'svc_test_'::text, 'svc_beta_'::text])),
  constraint rate_is_positive CHECK (rate_per_minute > 0),
  constraint scopes_are_known CHECK (scopes <@ ARRAY['llm'::text, 'tts'::text, 'images'::text, 'x'::text, 'cert'::text]),
  constraint secret_hash_is_sha256 CHECK (octet_length(secret_hash) = 32)
);

create table app.ledger_entries (
  id bigint generated always as identity not null,
  account_id uuid not null,
  kind text not null,
  amount_ap bigint not null,
  balance_after_ap bigint not null,
  request_id uuid,
  reason text,
  actor text default 'system'::text not null,
  created_at timestamp with time zone default now() not null,
  constraint ledger_entries_pkey PRIMARY KEY (id),
  constraint amount_is_not_zero CHECK (amount_ap <> 0),
  constraint balance_after_not_negative CHECK (balance_after_ap >= 0),
  constraint charges_and_refunds_name_a_request CHECK ((kind = ANY (ARRAY['charge'::text, 'refund'::text])) = (request_id IS NOT NULL)),
  constraint charges_take_and_credits_give CHECK (
CASE kind
    WHEN 'charge'::text THEN amount_ap < 0
    WHEN 'adjustment'::text THEN true
    ELSE amount_ap > 0
END),
  constraint entry_kind_is_known CHECK (kind = ANY (ARRAY['initial_grant'::text, 'grant'::text, 'purchase'::text, 'adjustment'::text, 'charge'::text, 'refund'::text]))
);

create table app.legacy_certs (
  number bigint not null,
  status text not null,
  title text,
  holder_name text,
  event text,
  issued_on date,
  details jsonb default '{}'::jsonb not null,
  imported_at timestamp with time zone default now() not null,
  constraint legacy_certs_pkey PRIMARY KEY (number),
  constraint legacy_number_is_positive CHECK (number > 0),
  constraint legacy_status_is_known CHECK (status = ANY (ARRAY['issued'::text, 'revoked'::text]))
);

create table app.licenses (
  asset_id uuid not null,
  token text not null,
  image_id uuid not null,
  model_id text not null,
  character_id uuid,
  terms text not null,
  created_at timestamp with time zone default now() not null,
  constraint licenses_pkey PRIMARY KEY (asset_id),
  constraint license_token_is_unique UNIQUE (token),
  constraint licenses_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.assets(id),
  constraint licenses_character_id_fkey FOREIGN KEY (character_id) REFERENCES app.characters(id),
  constraint license_token_is_long CHECK (token ~ '^lic_[A-Za-z0-9_-]{32}$'::text)
);

create table app.models (
  id text not null,
  type text not null,
  max_tokens integer,
  context_tokens integer,
  recommended boolean default false not null,
  retired_at timestamp with time zone,
  created_at timestamp with time zone default now() not null,
  constraint models_pkey PRIMARY KEY (id),
  constraint chat_models_have_limits CHECK (type <> 'chat'::text OR max_tokens > 0 AND context_tokens > 0),
  constraint model_type_is_known CHECK (type = ANY (ARRAY['chat'::text, 'speech'::text, 'transcription'::text, 'image'::text, 'video'::text, 'gateway'::text]))
);

create table app.operator_tokens (
  id uuid default gen_random_uuid() not null,
  name text not null,
  role text not null,
  secret_hash bytea not null,
  created_at timestamp with time zone default now() not null,
  revoked_at timestamp with time zone,
  constraint operator_tokens_pkey PRIMARY KEY (id),
  constraint operator_secret_is_unique UNIQUE (secret_hash),
  constraint operator_name_is_not_empty CHECK (length(name) >= 1 AND length(name) <= 200),
  constraint operator_secret_hash_is_sha256 CHECK (octet_length(secret_hash) = 32),
  constraint role_is_known CHECK (role = ANY (ARRAY['reader'::text, 'operator'::text]))
);

create table app.page_views (
  day date not null,
  page text not null,
  views bigint not null,
  constraint page_views_pkey PRIMARY KEY (day, page),
  constraint page_is_short CHECK (length(page) >= 1 AND length(page) <= 128),
  constraint views_are_positive CHECK (views > 0)
) with (fillfactor=70);

create table app.prices (
  id bigint generated always as identity not null,
  model_id text not null,
  unit text not null,
  ap_in_per_1k bigint,
  ap_out_per_1k bigint,
  ap bigint,
  size text default ''::text not null,
  quality text default ''::text not null,
  announced_at timestamp with time zone default now() not null,
  effective_at timestamp with time zone default now() not null,
  constraint prices_pkey PRIMARY KEY (id),
  constraint one_price_a_moment UNIQUE (model_id, size, quality, effective_at),
  constraint prices_model_id_fkey FOREIGN KEY (model_id) REFERENCES app.models(id),
  constraint components_fit_unit CHECK (
CASE unit
    WHEN 'per_1k_tokens'::text THEN ap_in_per_1k IS NOT NULL AND ap_out_per_1k IS NOT NULL AND ap IS NULL
    ELSE ap_in_per_1k IS NULL AND ap_out_per_1k IS NULL AND ap IS NOT NULL
END),
  constraint price_not_effective_before_announced CHECK (effective_at >= announced_at),
  constraint prices_not_negative CHECK (COALESCE(ap, 0::bigint) >= 0 AND COALESCE(ap_in_per_1k, 0::bigint) >= 0 AND COALESCE(ap_out_per_1k, 0::bigint) >= 0),
  constraint unit_is_known CHECK (unit = ANY (ARRAY['per_1k_tokens'::text, 'per_1k_characters'::text, 'per_10_seconds'::text, 'per_image'::text, 'per_second'::text, 'per_call'::text]))
);

create table app.processes (
  id uuid not null,
  kind text not null,
  pool_id text,
  details jsonb default '{}'::jsonb not null,
  started_at timestamp with time zone default now() not null,
  beat_at timestamp with time zone default now() not null,
  constraint processes_pkey PRIMARY KEY (id),
  constraint process_kind_is_known CHECK (kind = ANY (ARRAY['ingress'::text, 'worker'::text]))
) with (fillfactor=50);

create table app.providers (
  name text not null,
  kind text not null,
  base_url text,
  credential_env text,
  created_at timestamp with time zone default now() not null,
  constraint providers_pkey PRIMARY KEY (name),
  constraint base_url_is_http CHECK (base_url ~ '^https?://'::text),
  constraint credential_env_is_a_name CHECK (credential_env ~ '^[A-Z_][A-Z0-9_]*$'::text),
  constraint outside_providers_have_an_address CHECK (kind = 'sandbox'::text OR base_url IS NOT NULL),
  constraint provider_kind_is_known CHECK (kind = ANY (ARRAY['openai'::text, 'elevenlabs'::text, 'x'::text, 'sandbox'::text]))
);

create table app.request_inputs (
  request_id uuid not null,
  body text not null,
  constraint request_inputs_pkey PRIMARY KEY (request_id)
);

create table app.request_results (
  request_id uuid not null,
  kind text not null,
  body text not null,
  constraint request_results_pkey PRIMARY KEY (request_id),
  constraint result_kind_is_known CHECK (kind = ANY (ARRAY['json'::text, 'events'::text]))
) partition by RANGE (request_id);

create table app.requests (
  id uuid not null,
  account_id uuid not null,
  key_id uuid not null,
  area text not null,
  task text not null,
  model_id text not null,
  price_id bigint not null,
  state text default 'queued'::text not null,
  is_stream boolean default false not null,
  hold_ap bigint not null,
  cost_ap bigint,
  usage jsonb,
  provider text,
  error_code text,
  error_details jsonb,
  idempotency_key text,
  capped_scopes text[],
  ingress_id uuid,
  created_at timestamp with time zone default now() not null,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  deadline_at timestamp with time zone not null,
  constraint requests_pkey PRIMARY KEY (id),
  constraint cost_when_final CHECK ((finished_at IS NULL) = (cost_ap IS NULL)),
  constraint cost_within_hold CHECK (cost_ap >= 0 AND cost_ap <= hold_ap),
  constraint failure_costs_nothing CHECK ((state <> ALL (ARRAY['failed'::text, 'expired'::text])) OR cost_ap = 0),
  constraint failure_has_a_code CHECK ((state <> ALL (ARRAY['failed'::text, 'expired'::text])) OR error_code IS NOT NULL),
  constraint finished_when_final CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text])) = (finished_at IS NULL)),
  constraint hold_not_negative CHECK (hold_ap >= 0),
  constraint queued_has_not_started CHECK (state <> 'queued'::text OR started_at IS NULL),
  constraint running_has_started CHECK ((state <> ALL (ARRAY['running'::text, 'succeeded'::text])) OR started_at IS NOT NULL),
  constraint state_is_known CHECK (state = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text, 'expired'::text]))
) partition by RANGE (id);

create table app.result_cache (
  account_id uuid not null,
  cache_key bytea not null,
  request_id uuid not null,
  expires_at timestamp with time zone not null,
  constraint result_cache_pkey PRIMARY KEY (account_id, cache_key),
  constraint cache_key_is_sha256 CHECK (octet_length(cache_key) = 32)
);

create table app.routes (
  model_id text not null,
  provider text not null,
  upstream_model text not null,
  priority integer default 0 not null,
  weight integer default 1 not null,
  constraint routes_pkey PRIMARY KEY (model_id, provider, upstream_model),
  constraint routes_model_id_fkey FOREIGN KEY (model_id) REFERENCES app.models(id),
  constraint routes_provider_fkey FOREIGN KEY (provider) REFERENCES app.providers(name),
  constraint weight_is_positive CHECK (weight > 0)
);

create table app.voices (
  slug text not null,
  name text not null,
  tagline text default ''::text not null,
  provider text not null,
  upstream_voice text not null,
  model_id text not null,
  constraint voices_pkey PRIMARY KEY (slug),
  constraint voices_model_id_fkey FOREIGN KEY (model_id) REFERENCES app.models(id),
  constraint voices_provider_fkey FOREIGN KEY (provider) REFERENCES app.providers(name)
);

-- Indexes (those of constraints stand with their tables)

CREATE INDEX accounts_awaiting_approval ON app.accounts USING btree (created_at) WHERE ((kind = 'enterprise'::text) AND (approved_at IS NULL));
CREATE INDEX accounts_by_age ON app.accounts USING btree (created_at);
CREATE INDEX accounts_by_name ON app.accounts USING btree (lower(name) text_pattern_ops);
CREATE INDEX announcements_by_price ON app.announcements USING btree (price_id);
CREATE UNIQUE INDEX asset_selected_once_a_request ON app.assets USING btree (request_id) WHERE is_selected;
CREATE UNIQUE INDEX asset_stored_once_a_position ON app.assets USING btree (request_id, kind, "position") WHERE (state = 'stored'::text);
CREATE INDEX assets_by_account ON app.assets USING btree (account_id, kind, id DESC);
CREATE INDEX assets_by_request ON app.assets USING btree (request_id, kind, "position");
CREATE INDEX assets_to_sweep ON app.assets USING btree (sweep_at) WHERE (sweep_at IS NOT NULL);
CREATE INDEX audit_by_actor ON app.audit_log USING btree (actor, id);
CREATE INDEX audit_by_target ON app.audit_log USING btree (target_type, target_id, id);
CREATE INDEX audit_by_target_id ON app.audit_log USING btree (target_id, id);
CREATE INDEX cap_usage_by_age ON app.cap_usage USING btree (((period_start)::timestamp without time zone));
CREATE INDEX certs_by_asset ON app.certs USING btree (asset_id) WHERE (asset_id IS NOT NULL);
CREATE INDEX certs_by_issuer ON app.certs USING btree (issuer_account_id, cert_id DESC);
CREATE INDEX certs_by_issuer_key ON app.certs USING btree (issuer_key_id);
CREATE INDEX characters_by_account ON app.characters USING btree (account_id, id);
CREATE INDEX characters_by_payee ON app.characters USING btree (payee_account_id) WHERE (payee_account_id IS NOT NULL);
CREATE INDEX characters_by_reference ON app.characters USING btree (reference_asset_id) WHERE (reference_asset_id IS NOT NULL);
CREATE INDEX characters_public ON app.characters USING btree (id) WHERE (is_public AND (removed_at IS NULL));
CREATE INDEX gallery_items_by_account ON app.gallery_items USING btree (account_id, asset_id);
CREATE INDEX gallery_items_by_character ON app.gallery_items USING btree (character_id);
CREATE INDEX gallery_items_by_request ON app.gallery_items USING btree (request_id);
CREATE INDEX gallery_newest ON app.gallery_items USING btree (published_at DESC, asset_id DESC) WHERE (withdrawn_at IS NULL);
CREATE INDEX gallery_newest_of_character ON app.gallery_items USING btree (character_id, published_at DESC, asset_id DESC) WHERE (withdrawn_at IS NULL);
CREATE INDEX idempotency_keys_by_age ON app.idempotency_keys USING btree (created_at);
CREATE UNIQUE INDEX initial_grant_once ON app.ledger_entries USING btree (account_id) WHERE (kind = 'initial_grant'::text);
CREATE INDEX keys_by_account ON app.keys USING btree (account_id);
CREATE INDEX ledger_entries_by_account ON app.ledger_entries USING btree (account_id, id DESC);
CREATE INDEX licenses_by_character ON app.licenses USING btree (character_id);
CREATE INDEX refunds_by_request ON app.ledger_entries USING btree (request_id) WHERE (kind = 'refund'::text);
CREATE UNIQUE INDEX request_charged_once ON app.ledger_entries USING btree (request_id) WHERE (kind = 'charge'::text);
CREATE INDEX requests_by_account ON ONLY app.requests USING btree (account_id, id DESC);
CREATE INDEX result_cache_by_end ON app.result_cache USING btree (expires_at);
CREATE INDEX routes_by_provider ON app.routes USING btree (provider);
CREATE INDEX voices_by_model ON app.voices USING btree (model_id);
CREATE INDEX voices_by_provider ON app.voices USING btree (provider);

-- Views

create view admin.accounts as
 SELECT a.id,
    a.name,
    a.kind,
    a.subject,
    a.language,
    a.card_on_file,
    a.approved_at,
    a.allowed_models,
    a.created_at,
    COALESCE(b.balance_ap, 0::bigint) AS balance_ap,
    COALESCE(b.held_ap, 0::bigint) AS held_ap,
    COALESCE(b.balance_ap - b.held_ap, 0::bigint) AS available_ap,
    COALESCE(b.purchased_ap, 0::bigint) AS purchased_ap,
    b.initial_grant_at
   FROM app.accounts a
     LEFT JOIN app.balances b ON b.account_id = a.id;

create view admin.announcements as
 SELECT id,
    published_at,
    kind,
    title_en,
    title_ja,
    body_en,
    body_ja,
    price_id
   FROM app.announcements a;

create view admin.assets as
 SELECT id,
    account_id,
    request_id,
    kind,
    "position",
    content_type,
    bytes,
    details,
    created_at,
    expires_at,
    deleted_at,
    purged_at
   FROM app.assets a
  WHERE state = 'stored'::text;

create view admin.audit_entries as
 SELECT id,
    at,
    actor,
    action,
    target_type,
    target_id,
    before,
    after
   FROM app.audit_log a;

create view admin.cap_usages as
 SELECT u.subject_id,
    u.scope,
    u.period_start,
    u.used_ap,
        CASE u.scope
            WHEN 'key:day'::text THEN k.cap_daily_ap
            WHEN 'key:month'::text THEN k.cap_monthly_ap
            ELSE NULL::bigint
        END AS cap_ap,
        CASE
            WHEN u.scope ~~ 'key:%'::text THEN u.subject_id
            ELSE NULL::uuid
        END AS key_id,
        CASE
            WHEN u.scope ~~ 'account:%'::text THEN u.subject_id
            ELSE NULL::uuid
        END AS account_id
   FROM app.cap_usage u
     LEFT JOIN app.keys k ON u.scope ~~ 'key:%'::text AND k.id = u.subject_id;

create view admin.characters as
 SELECT id,
    account_id,
    slug,
    name_ja,
    name_en,
    reference_asset_id,
    is_public,
    payee_account_id,
    payee_subject,
    royalty_bps,
    created_at,
    removed_at
   FROM app.characters c;

create view admin.failed_jobs as
 SELECT id,
    task,
    attempts,
    max_attempts,
    last_error,
    created_at,
    failed_at
   FROM app.failed_jobs() j(id, task, attempts, max_attempts, last_error, created_at, failed_at);

create view admin.gallery_items as
 SELECT asset_id,
    image_id,
    account_id,
    request_id,
    model_id,
    character_id,
    charge_request_id,
    published_at,
    withdrawn_at
   FROM app.gallery_items g;

create view admin.keys as
 SELECT id,
    account_id,
    prefix,
    hint,
    name,
    scopes,
    allowed_models,
    cap_per_request_ap,
    cap_daily_ap,
    cap_monthly_ap,
    rate_per_minute,
    created_at,
    expires_at,
    revoked_at,
    last_used_at,
        CASE
            WHEN revoked_at IS NOT NULL THEN 'revoked'::text
            WHEN expires_at <= now() THEN 'expired'::text
            ELSE 'active'::text
        END AS state,
    ( SELECT u.used_ap
           FROM app.cap_usage u
          WHERE u.subject_id = k.id AND u.scope = 'key:day'::text AND u.period_start = (now() AT TIME ZONE 'utc'::text)::date) AS used_today_ap,
    ( SELECT u.used_ap
           FROM app.cap_usage u
          WHERE u.subject_id = k.id AND u.scope = 'key:month'::text AND u.period_start = date_trunc('month'::text, (now() AT TIME ZONE 'utc'::text))::date) AS used_this_month_ap
   FROM app.keys k;

create view admin.ledger_entries as
 SELECT id,
    account_id,
    kind,
    amount_ap,
    balance_after_ap,
    request_id,
    reason,
    actor,
    created_at
   FROM app.ledger_entries l;

create view admin.legacy_certs as
 SELECT number,
    status,
    title,
    holder_name,
    event,
    issued_on,
    details,
    imported_at
   FROM app.legacy_certs l;

create view admin.models as
 SELECT id,
    type,
    max_tokens,
    context_tokens,
    recommended,
    retired_at,
    created_at
   FROM app.models m;

create view admin.operator_tokens as
 SELECT id,
    name,
    role,
    created_at,
    revoked_at
   FROM app.operator_tokens t;

create view admin.prices as
 SELECT id,
    model_id,
    unit,
    ap_in_per_1k,
    ap_out_per_1k,
    ap,
    size,
    quality,
    announced_at,
    effective_at,
    effective_at <= now() AND NOT (EXISTS ( SELECT
           FROM app.prices n
          WHERE n.model_id = p.model_id AND n.size = p.size AND n.quality = p.quality AND n.effective_at > p.effective_at AND n.effective_at <= now())) AS is_in_force,
    effective_at > now() AS is_coming
   FROM app.prices p;

create view admin.processes as
 SELECT id,
    kind,
    pool_id,
    details,
    started_at,
    beat_at,
    EXTRACT(epoch FROM now() - beat_at)::integer AS silent_for_seconds
   FROM app.processes p;

create view admin.providers as
 SELECT name,
    kind,
    base_url,
    credential_env,
    created_at
   FROM app.providers p;

create view admin.queue_tasks as
 SELECT task,
    waiting,
    scheduled,
    running,
    failed,
    oldest_waiting_at
   FROM app.queue_tasks() q(task, waiting, scheduled, running, failed, oldest_waiting_at);

create view admin.requests as
 SELECT id,
    account_id,
    key_id,
    area,
    task,
    model_id,
    price_id,
    state,
    is_stream,
    hold_ap,
    cost_ap,
    COALESCE(( SELECT sum(l.amount_ap)::bigint AS sum
           FROM app.ledger_entries l
          WHERE l.request_id = q.id AND l.kind = 'refund'::text), 0::bigint) AS refunded_ap,
    usage,
    provider,
    error_code,
    error_details,
    idempotency_key,
    created_at,
    started_at,
    finished_at,
    deadline_at
   FROM app.requests q;

create view admin.routes as
 SELECT model_id,
    provider,
    upstream_model,
    priority,
    weight
   FROM app.routes r;

create view admin.voices as
 SELECT slug,
    name,
    tagline,
    provider,
    upstream_voice,
    model_id
   FROM app.voices v;

-- Functions (bodies: sql/functions)

create function admin.accounts_awaiting_approval() returns SETOF admin.accounts language sql stable;
create function admin.announce(p_title_en text, p_title_ja text, p_body_en text, p_body_ja text) returns admin.announcements language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.approve_account(p_account uuid) returns admin.accounts language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.cancel_request(p_request uuid) returns admin.requests language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.check_ledger() returns admin.ledger_report language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.create_account(p_name text, p_kind admin.account_kind DEFAULT 'personal'::admin.account_kind, p_subject text DEFAULT NULL::text, p_language admin.language DEFAULT NULL::admin.language, p_card_on_file boolean DEFAULT false) returns admin.accounts language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.forget_job(p_job bigint) returns admin.failed_jobs language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.grant_ap(p_account uuid, p_ap bigint, p_kind admin.grant_kind, p_reason text) returns admin.ledger_entries language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.import_legacy_certs(p_certificates jsonb) returns integer language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.issue_key(p_account uuid, p_secret_hash bytea, p_prefix text, p_hint text, p_name text, p_scopes text[], p_allowed_models text[], p_cap_per_request_ap bigint, p_cap_daily_ap bigint, p_cap_monthly_ap bigint, p_rate_per_minute integer, p_expires_at timestamp with time zone) returns uuid language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.publish_price(p_model text, p_unit admin.price_unit, p_ap bigint DEFAULT NULL::bigint, p_ap_in_per_1k bigint DEFAULT NULL::bigint, p_ap_out_per_1k bigint DEFAULT NULL::bigint, p_size text DEFAULT ''::text, p_quality text DEFAULT ''::text, p_effective_at timestamp with time zone DEFAULT NULL::timestamp with time zone) returns admin.prices language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.refund_request(p_request uuid, p_ap bigint, p_reason text) returns admin.ledger_entries language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.remove_character(p_character uuid, p_reason text) returns admin.characters language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.requests_ledger_entries(p_request admin.requests) returns SETOF admin.ledger_entries language sql stable;
create function admin.retire_model(p_model text) returns admin.models language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.retry_job(p_job bigint) returns admin.failed_jobs language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.revoke_key(p_key uuid) returns admin.keys language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.revoke_operator_token(p_token uuid) returns admin.operator_tokens language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.search_accounts(p_text text) returns SETOF admin.accounts language sql stable;
create function admin.search_requests(p_from timestamp with time zone, p_to timestamp with time zone DEFAULT NULL::timestamp with time zone, p_state admin.request_state DEFAULT NULL::admin.request_state, p_area text DEFAULT NULL::text, p_account uuid DEFAULT NULL::uuid, p_model text DEFAULT NULL::text, p_error_code text DEFAULT NULL::text) returns SETOF admin.requests language sql stable;
create function admin.take_down_asset(p_asset uuid, p_reason text) returns admin.assets language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.update_account(p_account uuid, p_patch jsonb) returns uuid language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function admin.update_key(p_key uuid, p_patch jsonb) returns uuid language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.abandon_assets(p_ids uuid[]) returns TABLE(id uuid, kind text, content_type text) language sql security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off;
create function app.audit(p_actor text, p_action text, p_target_type text, p_target_id text, p_before jsonb, p_after jsonb) returns void language sql security definer set search_path=pg_catalog, pg_temp;
create function app.beat(p_id uuid, p_kind text, p_pool_id text, p_details jsonb) returns void language sql security definer set search_path=pg_catalog, pg_temp;
create function app.begin_assets(p_assets json) returns void language sql security definer set search_path=pg_catalog, pg_temp;
create function app.begin_caps(p_account uuid, p_key uuid, p_scopes text[]) returns void language plpgsql set search_path=pg_catalog, pg_temp set enable_seqscan=off;
create function app.cancel_request(p_request uuid, p_account uuid) returns TABLE(request_id uuid, is_settled boolean, state text, cost_ap bigint) language sql security definer set search_path=pg_catalog, pg_temp;
create function app.cap_used(p_subject uuid, p_scope text, p_period_start date) returns bigint language sql stable set search_path=pg_catalog, pg_temp;
create function app.catalogue_document() returns jsonb language sql stable security definer set search_path=pg_catalog, pg_temp;
create function app.certify_image(p_submission json, p_image jsonb, p_cert jsonb, p_result jsonb, p_initial_grant_ap bigint) returns app.submit_answer language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.charge_request(p_submission json, p_result jsonb, p_initial_grant_ap bigint) returns app.submit_answer language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.claim_cached_answer(p_account uuid, p_key text, p_body_sha256 text, p_request uuid) returns TABLE(outcome text, request_id uuid) language sql security definer set search_path=pg_catalog, pg_temp;
create function app.claim_idempotency_key(p_account uuid, p_key text, p_body_hash bytea, p_request uuid) returns TABLE(outcome text, request_id uuid) language plpgsql set search_path=pg_catalog, pg_temp;
create function app.count_against_caps(p_item app.submission, p_hold_ap bigint, p_is_affordable boolean, p_is_grant_funded boolean, p_today date, p_month date) returns TABLE(outcome text, cap_ap bigint, resets_at timestamp with time zone, capped_scopes text[]) language plpgsql set search_path=pg_catalog, pg_temp;
create function app.count_gallery() returns trigger language plpgsql set search_path=pg_catalog, pg_temp set enable_seqscan=off;
create function app.count_page_views(p_views json) returns void language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.create_account(p_name text, p_kind text, p_subject text, p_language text, p_card_on_file boolean, p_actor text) returns uuid language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.credit_account(p_account uuid, p_ap bigint, p_kind text, p_reason text, p_actor text) returns TABLE(entry_id bigint, balance_ap bigint) language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.credit_account_audited(p_account uuid, p_ap bigint, p_kind text, p_reason text, p_actor text) returns TABLE(entry_id bigint, balance_ap bigint) language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.current_operator() returns text language plpgsql stable set search_path=pg_catalog, pg_temp;
create function app.delete_assets(p_account uuid, p_ids uuid[]) returns SETOF uuid language plpgsql security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off;
create function app.due_assets(p_limit integer) returns TABLE(id uuid, kind text, content_type text, is_over boolean) language sql security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off;
create function app.end_of_asset(p_asset app.assets) returns text language sql set search_path=pg_catalog, pg_temp;
create function app.ensure_partition(p_parent text, p_name text, p_from timestamp with time zone, p_to timestamp with time zone) returns void language plpgsql set search_path=pg_catalog, pg_temp;
create function app.expire_holds(p_limit integer DEFAULT 500) returns TABLE(request_id uuid) language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.failed_jobs() returns TABLE(id bigint, task text, attempts integer, max_attempts integer, last_error text, created_at timestamp with time zone, failed_at timestamp with time zone) language plpgsql stable security definer set search_path=pg_catalog, pg_temp;
create function app.find_key(p_secret_hash bytea) returns TABLE(key_id uuid, account_id uuid, prefix text, scopes text[], key_models text[], cap_per_request_ap bigint, cap_daily_ap bigint, cap_monthly_ap bigint, rate_per_minute integer, expires_at timestamp with time zone, revoked_at timestamp with time zone, account_kind text, account_approved boolean, account_models text[], account_created_at timestamp with time zone, language text, subject text, card_on_file boolean, had_initial_grant boolean, has_purchased boolean, has_balance boolean) language sql stable security definer set search_path=pg_catalog, pg_temp;
create function app.foresee_submission(p_submission json, p_initial_grant_ap bigint) returns app.submit_answer language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.free_forgotten_jobs(p_pool_id text, p_known bigint[], p_age interval) returns integer language sql set search_path=pg_catalog, pg_temp;
create function app.free_orphaned_jobs(p_silence interval) returns integer language sql set search_path=pg_catalog, pg_temp;
create function app.give_back_caps(p_requests uuid[]) returns void language sql set search_path=pg_catalog, pg_temp;
create function app.guard_price() returns trigger language plpgsql set search_path=pg_catalog, pg_temp;
create function app.import_catalogue(p_file jsonb, p_prune boolean, p_actor text) returns jsonb language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.import_prices(p_prices jsonb, p_actor text) returns jsonb language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.is_increase(p_from app.prices, p_to app.prices) returns boolean language sql immutable;
create function app.issue_key(p_account uuid, p_secret_hash bytea, p_prefix text, p_hint text, p_name text, p_scopes text[], p_allowed_models text[], p_cap_per_request_ap bigint, p_cap_daily_ap bigint, p_cap_monthly_ap bigint, p_rate_per_minute integer, p_expires_at timestamp with time zone, p_actor text) returns uuid language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.issue_operator_token(p_name text, p_role text, p_secret_hash bytea, p_actor text) returns uuid language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.keep_asset(p_asset uuid) returns void language sql set search_path=pg_catalog, pg_temp;
create function app.known_idempotency_key(p_item app.submission) returns app.submit_answer language sql stable set search_path=pg_catalog, pg_temp;
create function app.leave(p_id uuid) returns void language sql security definer set search_path=pg_catalog, pg_temp;
create function app.ledger_check() returns TABLE(accounts bigint, entries bigint, open_holds bigint, stale_holds bigint, drift_ap bigint, problems jsonb) language sql stable security definer set search_path=pg_catalog, pg_temp;
create function app.license_asset(p_asset app.assets, p_image jsonb) returns text language plpgsql set search_path=pg_catalog, pg_temp;
create function app.lock_image(p_asset uuid, p_account uuid) returns app.assets language plpgsql set search_path=pg_catalog, pg_temp set enable_seqscan=off;
create function app.lost_holds(p_requests uuid[]) returns SETOF uuid language sql stable security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off;
create function app.maintain_partitions(p_now timestamp with time zone DEFAULT now()) returns void language plpgsql security definer set search_path=pg_catalog, pg_temp set lock_timeout=1s;
create function app.mark_running(p_requests uuid[]) returns void language sql security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off;
create function app.milli_ap_to_ap(p_milli_ap bigint) returns bigint language sql immutable parallel safe;
create function app.notify_account() returns trigger language plpgsql;
create function app.notify_catalogue() returns trigger language plpgsql;
create function app.price_in_force(p_model text, p_size text, p_quality text, p_at timestamp with time zone) returns app.prices language sql stable set search_path=pg_catalog, pg_temp;
create function app.publish_image(p_submission json, p_image jsonb, p_result jsonb, p_initial_grant_ap bigint) returns app.submit_answer language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.publish_price(p_model text, p_unit text, p_ap_in_per_1k bigint, p_ap_out_per_1k bigint, p_ap bigint, p_size text, p_quality text, p_effective_at timestamp with time zone, p_actor text) returns app.prices language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.purge_assets(p_ids uuid[]) returns void language sql security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off;
create function app.purge_expired(p_limit integer DEFAULT 5000) returns integer language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.queue_tasks() returns TABLE(task text, waiting bigint, scheduled bigint, running bigint, failed bigint, oldest_waiting_at timestamp with time zone) language plpgsql stable security definer set search_path=pg_catalog, pg_temp;
create function app.reap_processes(p_silence interval) returns integer language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.refund_request(p_request uuid, p_ap bigint, p_reason text, p_actor text) returns TABLE(entry_id bigint, balance_ap bigint) language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.refuse_change() returns trigger language plpgsql;
create function app.refuse_unknown_models(p_models text[]) returns void language plpgsql stable set search_path=pg_catalog, pg_temp;
create function app.register_character(p_character json, p_picture json, p_max_an_account integer) returns text language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.release_asset(p_asset uuid) returns void language sql set search_path=pg_catalog, pg_temp;
create function app.remove_character(p_account uuid, p_character uuid) returns app.characters language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.require_reason(p_reason text) returns void language plpgsql set search_path=pg_catalog, pg_temp;
create function app.revoke_key(p_key uuid, p_actor text) returns timestamp with time zone language plpgsql security definer set search_path=pg_catalog, pg_temp;
create function app.settle_requests(p_batch json) returns TABLE(request_id uuid, is_settled boolean, state text, cost_ap bigint) language sql security definer set search_path=pg_catalog, pg_temp;
create function app.settle_requests(p_batch json, p_ids uuid[]) returns TABLE(request_id uuid, is_settled boolean, state text, cost_ap bigint) language plpgsql security definer set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off;
create function app.store_assets(p_files json) returns SETOF uuid language sql security definer set search_path=pg_catalog, pg_temp;
create function app.store_results(p_ended json) returns void language plpgsql set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off;
create function app.submit_funded_requests(p_batch json, p_jobs json) returns integer[] language plpgsql security definer set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_hashjoin=off set enable_mergejoin=off set enable_bitmapscan=off;
create function app.submit_requests(p_batch json, p_inputs json, p_initial_grant_ap bigint) returns TABLE(n integer, outcome text, hold_ap bigint, units bigint, required_ap bigint, available_ap bigint, held_ap bigint, cap_ap bigint, resets_at timestamp with time zone, other_request_id uuid) language plpgsql security definer set search_path=pg_catalog, pg_temp set plan_cache_mode=force_generic_plan set enable_seqscan=off;
create function app.touch_keys(p_keys uuid[]) returns void language sql security definer set search_path=pg_catalog, pg_temp;
create function app.uuid_floor(p_at timestamp with time zone) returns uuid language sql immutable parallel safe;
create function app.withdraw_images(p_account uuid, p_id uuid) returns SETOF uuid language plpgsql security definer set search_path=pg_catalog, pg_temp set enable_seqscan=off;

-- Triggers

CREATE TRIGGER _500_tell_ingresses AFTER UPDATE ON app.accounts FOR EACH ROW EXECUTE FUNCTION app.notify_account();
CREATE TRIGGER _100_audit_never_changes BEFORE DELETE OR UPDATE ON app.audit_log FOR EACH ROW EXECUTE FUNCTION app.refuse_change();
CREATE TRIGGER _110_audit_never_truncated BEFORE TRUNCATE ON app.audit_log FOR EACH STATEMENT EXECUTE FUNCTION app.refuse_change();
CREATE TRIGGER _500_count_gallery AFTER INSERT OR UPDATE ON app.gallery_items FOR EACH ROW EXECUTE FUNCTION app.count_gallery();
CREATE TRIGGER _500_tell_ingresses AFTER UPDATE ON app.keys FOR EACH ROW WHEN (NOT old.last_used_at IS DISTINCT FROM new.last_used_at) EXECUTE FUNCTION app.notify_account();
CREATE TRIGGER _100_ledger_never_changes BEFORE DELETE OR UPDATE ON app.ledger_entries FOR EACH ROW EXECUTE FUNCTION app.refuse_change();
CREATE TRIGGER _110_ledger_never_truncated BEFORE TRUNCATE ON app.ledger_entries FOR EACH STATEMENT EXECUTE FUNCTION app.refuse_change();
CREATE TRIGGER _500_tell_everybody AFTER INSERT OR DELETE OR UPDATE ON app.models FOR EACH STATEMENT EXECUTE FUNCTION app.notify_catalogue();
CREATE TRIGGER _100_prices_never_change BEFORE DELETE OR UPDATE ON app.prices FOR EACH ROW EXECUTE FUNCTION app.refuse_change();
CREATE TRIGGER _110_prices_never_truncated BEFORE TRUNCATE ON app.prices FOR EACH STATEMENT EXECUTE FUNCTION app.refuse_change();
CREATE TRIGGER _200_increase_needs_seven_days_notice BEFORE INSERT ON app.prices FOR EACH ROW EXECUTE FUNCTION app.guard_price();
CREATE TRIGGER _500_tell_everybody AFTER INSERT ON app.prices FOR EACH STATEMENT EXECUTE FUNCTION app.notify_catalogue();
CREATE TRIGGER _500_tell_everybody AFTER INSERT OR DELETE OR UPDATE ON app.providers FOR EACH STATEMENT EXECUTE FUNCTION app.notify_catalogue();
CREATE TRIGGER _500_tell_everybody AFTER INSERT OR DELETE OR UPDATE ON app.routes FOR EACH STATEMENT EXECUTE FUNCTION app.notify_catalogue();
CREATE TRIGGER _500_tell_everybody AFTER INSERT OR DELETE OR UPDATE ON app.voices FOR EACH STATEMENT EXECUTE FUNCTION app.notify_catalogue();

-- Rights (the owner’s left out)

grant usage on schema admin to operator, operator_reader;
grant usage on schema app to app_ingress, app_worker;
grant select on table admin.accounts to operator, operator_reader;
grant select on table admin.announcements to operator, operator_reader;
grant select on table admin.assets to operator, operator_reader;
grant select on table admin.audit_entries to operator, operator_reader;
grant select on table admin.cap_usages to operator, operator_reader;
grant select on table admin.characters to operator, operator_reader;
grant select on table admin.failed_jobs to operator, operator_reader;
grant select on table admin.gallery_items to operator, operator_reader;
grant select on table admin.keys to operator, operator_reader;
grant select on table admin.ledger_entries to operator, operator_reader;
grant select on table admin.legacy_certs to operator, operator_reader;
grant select on table admin.models to operator, operator_reader;
grant select on table admin.operator_tokens to operator, operator_reader;
grant select on table admin.prices to operator, operator_reader;
grant select on table admin.processes to operator, operator_reader;
grant select on table admin.providers to operator, operator_reader;
grant select on table admin.queue_tasks to operator, operator_reader;
grant select on table admin.requests to operator, operator_reader;
grant select on table admin.routes to operator, operator_reader;
grant select on table admin.voices to operator, operator_reader;
grant select on table app.accounts to app_ingress;
grant select on table app.announcements to app_ingress;
grant select on table app.assets to app_ingress, app_worker;
grant select on table app.balances to app_ingress;
grant select on table app.cap_usage to app_ingress;
grant select on table app.certs to app_ingress;
grant select on table app.characters to app_ingress;
grant select on table app.gallery_items to app_ingress;
grant select on table app.gallery_totals to app_ingress;
grant select on table app.holds to app_ingress, app_worker;
grant select on table app.idempotency_keys to app_ingress;
grant select on table app.keys to app_ingress;
grant select on table app.ledger_entries to app_ingress;
grant select on table app.legacy_certs to app_ingress;
grant select on table app.licenses to app_ingress;
grant select on table app.models to app_ingress, app_worker;
grant select on table app.prices to app_ingress, app_worker;
grant select on table app.processes to app_ingress, app_worker;
grant select on table app.providers to app_ingress, app_worker;
grant select on table app.request_inputs to app_worker;
grant select on table app.request_results to app_ingress;
grant select on table app.requests to app_ingress, app_worker;
grant select on table app.result_cache to app_ingress;
grant select on table app.routes to app_ingress, app_worker;
grant select on table app.voices to app_ingress, app_worker;
grant execute on function admin.accounts_awaiting_approval() to operator, operator_reader;
grant execute on function admin.announce(text,text,text,text) to operator;
grant execute on function admin.approve_account(uuid) to operator;
grant execute on function admin.cancel_request(uuid) to operator;
grant execute on function admin.check_ledger() to operator;
grant execute on function admin.create_account(text,admin.account_kind,text,admin.language,boolean) to operator;
grant execute on function admin.forget_job(bigint) to operator;
grant execute on function admin.grant_ap(uuid,bigint,admin.grant_kind,text) to operator;
grant execute on function admin.import_legacy_certs(jsonb) to operator;
grant execute on function admin.issue_key(uuid,bytea,text,text,text,text[],text[],bigint,bigint,bigint,integer,timestamp with time zone) to operator;
grant execute on function admin.publish_price(text,admin.price_unit,bigint,bigint,bigint,text,text,timestamp with time zone) to operator;
grant execute on function admin.refund_request(uuid,bigint,text) to operator;
grant execute on function admin.remove_character(uuid,text) to operator;
grant execute on function admin.requests_ledger_entries(admin.requests) to operator, operator_reader;
grant execute on function admin.retire_model(text) to operator;
grant execute on function admin.retry_job(bigint) to operator;
grant execute on function admin.revoke_key(uuid) to operator;
grant execute on function admin.revoke_operator_token(uuid) to operator;
grant execute on function admin.search_accounts(text) to operator, operator_reader;
grant execute on function admin.search_requests(timestamp with time zone,timestamp with time zone,admin.request_state,text,uuid,text,text) to operator, operator_reader;
grant execute on function admin.take_down_asset(uuid,text) to operator;
grant execute on function admin.update_account(uuid,jsonb) to operator;
grant execute on function admin.update_key(uuid,jsonb) to operator;
grant execute on function app.abandon_assets(uuid[]) to app_ingress, app_worker;
grant execute on function app.beat(uuid,text,text,jsonb) to app_ingress, app_worker;
grant execute on function app.begin_assets(json) to app_ingress, app_worker;
grant execute on function app.cancel_request(uuid,uuid) to app_ingress;
grant execute on function app.cap_used(uuid,text,date) to app_ingress;
grant execute on function app.certify_image(json,jsonb,jsonb,jsonb,bigint) to app_ingress;
grant execute on function app.claim_cached_answer(uuid,text,text,uuid) to app_ingress;
grant execute on function app.count_page_views(json) to app_ingress;
grant execute on function app.delete_assets(uuid,uuid[]) to app_ingress;
grant execute on function app.due_assets(integer) to app_worker;
grant execute on function app.expire_holds(integer) to app_worker;
grant execute on function app.failed_jobs() to operator, operator_reader;
grant execute on function app.find_key(bytea) to app_ingress;
grant execute on function app.foresee_submission(json,bigint) to app_ingress;
grant execute on function app.leave(uuid) to app_ingress, app_worker;
grant execute on function app.ledger_check() to app_worker;
grant execute on function app.lost_holds(uuid[]) to app_worker;
grant execute on function app.maintain_partitions(timestamp with time zone) to app_worker;
grant execute on function app.mark_running(uuid[]) to app_worker;
grant execute on function app.price_in_force(text,text,text,timestamp with time zone) to app_ingress;
grant execute on function app.publish_image(json,jsonb,jsonb,bigint) to app_ingress;
grant execute on function app.purge_assets(uuid[]) to app_ingress, app_worker;
grant execute on function app.purge_expired(integer) to app_worker;
grant execute on function app.queue_tasks() to operator, operator_reader;
grant execute on function app.reap_processes(interval) to app_worker;
grant execute on function app.register_character(json,json,integer) to app_ingress;
grant execute on function app.remove_character(uuid,uuid) to app_ingress;
grant execute on function app.settle_requests(json) to app_worker;
grant execute on function app.settle_requests(json,uuid[]) to app_worker;
grant execute on function app.store_assets(json) to app_ingress;
grant execute on function app.submit_funded_requests(json,json) to app_ingress;
grant execute on function app.submit_requests(json,json,bigint) to app_ingress;
grant execute on function app.touch_keys(uuid[]) to app_ingress;
grant execute on function app.uuid_floor(timestamp with time zone) to app_ingress;
grant execute on function app.withdraw_images(uuid,uuid) to app_ingress;
