-- Up Migration

-- Files that requests bring forth or take in. The row comes first (`writing`), then the file, under a key that follows from kind,
-- id and content type (core/assets/keys.ts); settling the request makes the row `stored`. So each file has a row, and what nobody
-- stored is swept. Rows of what was stored stay after their files are gone.
create table app.assets (
  -- UUID version 7: the key takes its date from it
  id uuid primary key,
  account_id uuid not null,
  -- null: of no request (a character's reference picture)
  request_id uuid,
  kind text not null,
  -- among those of its kind in the request, from 0
  position integer not null default 0,
  content_type text not null,
  -- known once the file is there
  bytes bigint,
  sha256 bytea,
  -- width, height, seconds …
  details jsonb not null default '{}',
  -- only what is stored is shown to anybody
  state text not null default 'writing',
  created_at timestamptz not null default now(),
  -- null: kept until it is deleted
  expires_at timestamptz,
  -- by its owner, or taken down
  deleted_at timestamptz,
  -- since then the file is gone
  purged_at timestamptz,
  -- when housekeeping looks at it next (app.due_assets); null: never
  sweep_at timestamptz default now() + interval '1 hour',
  constraint asset_kind_is_known check (kind in ('image', 'audio', 'video', 'input', 'partial', 'character', 'preview')),
  constraint asset_names_its_request check (request_id is not null or kind = 'character'),
  constraint asset_position_not_negative check (position >= 0),
  constraint asset_content_type_is_one check (content_type ~ '^[a-z]+/[a-z0-9.+-]+$'),
  constraint asset_bytes_not_negative check (bytes >= 0),
  constraint asset_sha256_is_sha256 check (octet_length(sha256) = 32),
  constraint asset_state_is_known check (state in ('writing', 'stored')),
  constraint stored_asset_is_measured check (state <> 'stored' or (bytes is not null and sha256 is not null)),
  constraint only_stored_assets_end check (
    state = 'stored' or (expires_at is null and deleted_at is null and purged_at is null)
  ),
  constraint purged_asset_has_ended check (purged_at is null or deleted_at is not null or expires_at is not null),
  constraint asset_that_ends_is_swept check (
    case
      when purged_at is not null then sweep_at is null
      else sweep_at is not null or (state = 'stored' and expires_at is null and deleted_at is null)
    end
  )
);
create index assets_by_request on app.assets (request_id, kind, position);
create index assets_by_account on app.assets (account_id, kind, id desc);
create index assets_to_sweep on app.assets (sweep_at) where sweep_at is not null;
-- Two runs of a request may both write: one alone is settled.
create unique index asset_stored_once_a_position on app.assets (request_id, kind, position) where state = 'stored';

-- What an account has had made before: the same again costs nothing. Whether the files are still there, the assets say.
create table app.result_cache (
  account_id uuid not null,
  -- SHA-256 of all that makes the result
  cache_key bytea not null,
  request_id uuid not null,
  expires_at timestamptz not null,
  primary key (account_id, cache_key),
  constraint cache_key_is_sha256 check (octet_length(cache_key) = 32)
);
create index result_cache_by_end on app.result_cache (expires_at);

-- A file that was put, as its request's settlement names it.
create type app.asset_file as (
  id uuid,
  bytes bigint,
  -- hexadecimal
  sha256 text,
  -- added to what the row has
  details jsonb,
  -- null: kept until it is deleted
  retention_days integer
);

alter type app.settlement
  -- array of app.asset_file
  add attribute assets json,
  -- hexadecimal; only together with assets
  add attribute cache_key text;
