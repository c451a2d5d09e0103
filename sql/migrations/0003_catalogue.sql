-- Up Migration

create table app.providers (
  name text primary key,
  kind text not null,
  base_url text,
  -- the NAME of the environment variable that holds the credential
  credential_env text,
  created_at timestamptz not null default now(),
  constraint provider_kind_is_known check (kind in ('openai', 'elevenlabs', 'x', 'sandbox')),
  constraint base_url_is_http check (base_url ~ '^https?://'),
  constraint credential_env_is_a_name check (credential_env ~ '^[A-Z_][A-Z0-9_]*$'),
  constraint outside_providers_have_an_address check (kind = 'sandbox' or base_url is not null)
);

create table app.models (
  id text primary key,
  type text not null,
  max_tokens integer,
  context_tokens integer,
  recommended boolean not null default false,
  -- taken out of the catalogue: kept for the requests that name it, not offered any more
  retired_at timestamptz,
  created_at timestamptz not null default now(),
  constraint model_type_is_known check (type in ('chat', 'speech', 'transcription', 'image', 'video', 'gateway')),
  constraint chat_models_have_limits check (type <> 'chat' or (max_tokens > 0 and context_tokens > 0))
);

create table app.routes (
  model_id text not null references app.models,
  provider text not null references app.providers,
  upstream_model text not null,
  -- lower is tried first; routes of one priority share the load by weight
  priority integer not null default 0,
  weight integer not null default 1,
  primary key (model_id, provider, upstream_model),
  constraint weight_is_positive check (weight > 0)
);
create index routes_by_provider on app.routes (provider);

-- One row per price and date; the row in force is the latest whose effective_at has come. Rows never change.
create table app.prices (
  id bigint generated always as identity primary key,
  model_id text not null references app.models,
  unit text not null,
  ap_in_per_1k bigint,
  ap_out_per_1k bigint,
  ap bigint,
  size text not null default '',
  quality text not null default '',
  announced_at timestamptz not null default now(),
  effective_at timestamptz not null default now(),
  constraint unit_is_known check (
    unit in ('per_1k_tokens', 'per_1k_characters', 'per_10_seconds', 'per_image', 'per_second', 'per_call')
  ),
  constraint components_fit_unit check (
    case unit
      when 'per_1k_tokens' then ap_in_per_1k is not null and ap_out_per_1k is not null and ap is null
      else ap_in_per_1k is null and ap_out_per_1k is null and ap is not null
    end
  ),
  constraint prices_not_negative check (
    coalesce(ap, 0) >= 0 and coalesce(ap_in_per_1k, 0) >= 0 and coalesce(ap_out_per_1k, 0) >= 0
  ),
  constraint price_not_effective_before_announced check (effective_at >= announced_at),
  constraint one_price_a_moment unique (model_id, size, quality, effective_at)
);

create table app.voices (
  slug text primary key,
  name text not null,
  tagline text not null default '',
  provider text not null references app.providers,
  upstream_voice text not null,
  model_id text not null references app.models
);
create index voices_by_provider on app.voices (provider);
create index voices_by_model on app.voices (model_id);

-- The weekly feed's entries; publishing a price writes one.
create table app.announcements (
  id bigint generated always as identity primary key,
  published_at timestamptz not null default now(),
  kind text not null,
  title_en text not null,
  title_ja text not null,
  body_en text not null,
  body_ja text not null,
  price_id bigint references app.prices,
  constraint announcement_kind_is_known check (kind in ('price', 'notice'))
);
create index announcements_by_price on app.announcements (price_id);
