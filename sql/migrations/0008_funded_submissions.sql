-- Up Migration

-- One request of a batch for app.submit_funded_requests, of which nothing but the balance is to be looked up.
create type app.funded_submission as (
  -- position in the batch, from 1
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
  -- the account may have its initial grant (old enough)
  is_grant_allowed boolean
);

-- A request that a call of settle_requests ended.
create type app.ended_request as (
  id uuid,
  account_id uuid,
  hold_ap bigint,
  cost_ap bigint,
  state text,
  is_capped boolean,
  idempotency_key text
);
