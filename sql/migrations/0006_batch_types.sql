-- Up Migration

-- One request of a submit batch; the shape of the JSON that the ingress sends. Amounts are thousandths of an AP
-- ("milli-AP"), so that a hold is rounded up once: ceil((fixed + units × unit) / 1000).
create type app.submission as (
  -- position in the batch, from 1; the input of the same position belongs to it
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
  -- as many units as the balance can pay for are held: at most max_units, and refused below min_units
  min_units bigint,
  max_units bigint,
  timeout_seconds integer,
  idempotency_key text,
  body_sha256 text,
  cap_per_request_ap bigint,
  cap_daily_ap bigint,
  cap_monthly_ap bigint,
  -- the account's daily allowance for this area while it spends granted AP
  grant_daily_cap_ap bigint,
  -- the account may have its initial grant (old enough)
  is_grant_allowed boolean,
  -- only purchased AP may be spent: a live key whose account has no card on file
  needs_purchased boolean
);

-- What became of one request of a submit batch.
create type app.submit_answer as (
  n integer,
  outcome text,
  hold_ap bigint,
  units bigint,
  required_ap bigint,
  available_ap bigint,
  held_ap bigint,
  cap_ap bigint,
  resets_at timestamptz,
  other_request_id uuid,
  capped_scopes text[]
);

-- How one request ended; the shape of the JSON that a worker sends.
create type app.settlement as (
  request_id uuid,
  state text,
  cost_ap bigint,
  usage jsonb,
  provider text,
  error_code text,
  error_details jsonb,
  started_at timestamptz,
  result_kind text,
  result text
);

create type app.resolved_hold as (request_id uuid, account_id uuid, amount_ap bigint);
