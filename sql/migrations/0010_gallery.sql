-- Up Migration

-- A character is drawn again and again: its prompt and its picture go with every request that names it.
create table app.characters (
  -- UUID version 7: newest first by its key
  id uuid primary key,
  account_id uuid not null references app.accounts,
  -- what callers write
  slug text not null,
  name_ja text not null,
  name_en text not null,
  prompt text not null,
  reference_asset_id uuid references app.assets,
  -- else its account alone may use it
  is_public boolean not null default false,
  -- who has a share of what is charged for requests that use it
  payee_account_id uuid references app.accounts,
  payee_subject text,
  -- hundredths of a percent
  royalty_bps integer not null default 0,
  created_at timestamptz not null default now(),
  removed_at timestamptz,
  -- for good: nobody takes the name of a character that was removed
  constraint character_slug_is_unique unique (slug),
  constraint character_slug_is_a_word check (
    slug ~ '^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$' and slug !~ '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  ),
  constraint character_names_are_short check (length(name_ja) between 1 and 200 and length(name_en) between 1 and 200),
  constraint character_prompt_is_short check (length(prompt) between 1 and 4000),
  constraint character_has_one_payee check (num_nonnulls(payee_account_id, payee_subject) <= 1),
  constraint royalty_is_a_share check (royalty_bps between 0 and 10000),
  constraint royalty_has_a_payee check (royalty_bps = 0 or num_nonnulls(payee_account_id, payee_subject) = 1)
);
create index characters_by_account on app.characters (account_id, id);
create index characters_public on app.characters (id) where is_public and removed_at is null;
create index characters_by_payee on app.characters (payee_account_id) where payee_account_id is not null;
create index characters_by_reference on app.characters (reference_asset_id) where reference_asset_id is not null;

alter table app.assets
  -- of a generation's pictures the one that its own address serves; the first where none is
  add column is_selected boolean not null default false,
  -- when it would have expired, had it not been published or certified
  add column kept_expires_at timestamptz,
  add constraint kept_asset_does_not_expire check (kept_expires_at is null or expires_at is null);
create unique index asset_selected_once_a_request on app.assets (request_id) where is_selected;

-- Pictures that their owners have shown to everybody. A row stays when its picture is taken back: publishing is paid once.
create table app.gallery_items (
  asset_id uuid primary key references app.assets,
  -- its generation where that has no other picture, else the picture
  image_id uuid not null,
  account_id uuid not null,
  request_id uuid not null,
  model_id text not null,
  character_id uuid references app.characters,
  -- the request that paid for it
  charge_request_id uuid not null,
  published_at timestamptz not null,
  withdrawn_at timestamptz,
  constraint not_withdrawn_before_published check (withdrawn_at >= published_at)
);
create index gallery_newest on app.gallery_items (published_at desc, asset_id desc) where withdrawn_at is null;
create index gallery_newest_of_character on app.gallery_items (character_id, published_at desc, asset_id desc)
  where withdrawn_at is null;
create index gallery_items_by_request on app.gallery_items (request_id);
create index gallery_items_by_account on app.gallery_items (account_id, asset_id);
create index gallery_items_by_character on app.gallery_items (character_id);

-- How many items a page of the gallery is out of: counted as they come and go, so that nobody counts a large gallery.
create table app.gallery_totals (
  -- zero: all of them
  character_id uuid primary key,
  items bigint not null,
  constraint gallery_total_not_negative check (items >= 0)
) with (fillfactor = 50);

-- What may be done with a published or certified picture, for whoever holds the token.
create table app.licenses (
  asset_id uuid primary key references app.assets,
  token text not null,
  image_id uuid not null,
  model_id text not null,
  character_id uuid references app.characters,
  -- the terms by their name, which never change their meaning
  terms text not null,
  created_at timestamptz not null default now(),
  constraint license_token_is_unique unique (token),
  constraint license_token_is_long check (token ~ '^lic_[A-Za-z0-9_-]{32}$')
);
create index licenses_by_character on app.licenses (character_id);

-- Certificates: one an entry. record_sha256 is that of the public record (core/certificates.ts).
create table app.certs (
  -- UUID version 7
  cert_id uuid primary key,
  -- what is certified
  entry_id text not null,
  source text not null,
  status text not null,
  title text,
  holder_name text,
  event text,
  issued_on date,
  details jsonb not null default '{}',
  -- never public
  notify_email text,
  -- of this service, and the id that its record names it by
  asset_id uuid references app.assets,
  image_id uuid,
  cert_image_url text,
  issuer_account_id uuid not null references app.accounts,
  issuer_key_id uuid not null references app.keys,
  -- the request that paid for it
  charge_request_id uuid,
  record_sha256 bytea,
  created_at timestamptz not null default now(),
  constraint entry_certified_once unique (entry_id),
  constraint cert_source_is_known check (source in ('award', 'create', 'permit', 'lecture', 'contest')),
  constraint cert_status_is_known check (status in ('pending', 'issued', 'approved', 'revoked')),
  constraint cert_record_sha256_is_sha256 check (octet_length(record_sha256) = 32),
  constraint cert_names_its_image check ((asset_id is null) = (image_id is null)),
  constraint issued_cert_has_a_record check (status not in ('issued', 'approved') or (record_sha256 is not null and issued_on is not null))
);
create index certs_by_asset on app.certs (asset_id) where asset_id is not null;
create index certs_by_issuer on app.certs (issuer_account_id, cert_id desc);
create index certs_by_issuer_key on app.certs (issuer_key_id);

-- Certificates of before this service, by their numbers, as operators import them.
create table app.legacy_certs (
  number bigint primary key,
  status text not null,
  title text,
  holder_name text,
  event text,
  issued_on date,
  details jsonb not null default '{}',
  imported_at timestamptz not null default now(),
  constraint legacy_number_is_positive check (number > 0),
  constraint legacy_status_is_known check (status in ('issued', 'revoked'))
);

-- Views of pages that carry the beacon: no address, no cookie, nothing of a person.
create table app.page_views (
  day date not null,
  page text not null,
  views bigint not null,
  primary key (day, page),
  constraint page_is_short check (length(page) between 1 and 128),
  constraint views_are_positive check (views > 0)
) with (fillfactor = 70);
