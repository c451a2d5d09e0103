-- Up Migration

-- Request ids are UUID version 7: their first 48 bits are the time, so the id alone leads to the partition, the primary
-- key needs no second column, and newest-first by account is an index scan whatever the number of rows.
create table app.requests (
  id uuid primary key,
  account_id uuid not null,
  key_id uuid not null,
  area text not null,
  task text not null,
  model_id text not null,
  price_id bigint not null,
  state text not null default 'queued',
  -- the caller reads the answer as server-sent events
  is_stream boolean not null default false,
  hold_ap bigint not null,
  cost_ap bigint,
  usage jsonb,
  -- the provider that served it
  provider text,
  error_code text,
  -- sibling fields of the error, e.g. {"param": "messages"}
  error_details jsonb,
  idempotency_key text,
  -- the scopes of cap_usage in which the hold was counted: what is not spent is given back there
  capped_scopes text[],
  -- the process to which the answer is relayed
  ingress_id uuid,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  deadline_at timestamptz not null,
  constraint state_is_known check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired')),
  constraint running_has_started check (state not in ('running', 'succeeded') or started_at is not null),
  constraint queued_has_not_started check (state <> 'queued' or started_at is null),
  constraint finished_when_final check ((state in ('queued', 'running')) = (finished_at is null)),
  constraint cost_when_final check ((finished_at is null) = (cost_ap is null)),
  constraint hold_not_negative check (hold_ap >= 0),
  constraint cost_within_hold check (cost_ap between 0 and hold_ap),
  constraint failure_costs_nothing check (state not in ('failed', 'expired') or cost_ap = 0),
  constraint failure_has_a_code check (state not in ('failed', 'expired') or error_code is not null)
) partition by range (id);
create index requests_by_account on app.requests (account_id, id desc);
create table app.requests_default partition of app.requests default;

-- Open holds only: resolving a hold deletes its row, which one transaction alone can do. Settling, voiding, expiring and
-- cancelling all begin with that delete, so each hold is resolved exactly once, whoever comes first.
create table app.holds (
  request_id uuid primary key,
  account_id uuid not null,
  amount_ap bigint not null,
  deadline_at timestamptz not null,
  constraint hold_amount_not_negative check (amount_ap >= 0)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

create table app.ledger_entries (
  id bigint generated always as identity primary key,
  -- no foreign key, which would lock the account's row for every entry: entries are only written together with app.balances,
  -- whose row has one, and accounts are never deleted
  account_id uuid not null,
  kind text not null,
  -- positive: into the account; negative: out of it
  amount_ap bigint not null,
  balance_after_ap bigint not null,
  -- charges and refunds name their request
  request_id uuid,
  reason text,
  -- 'system', 'cli', or the operator
  actor text not null default 'system',
  created_at timestamptz not null default now(),
  constraint entry_kind_is_known check (kind in ('initial_grant', 'grant', 'purchase', 'adjustment', 'charge', 'refund')),
  constraint amount_is_not_zero check (amount_ap <> 0),
  constraint charges_take_and_credits_give check (
    case kind when 'charge' then amount_ap < 0 when 'adjustment' then true else amount_ap > 0 end
  ),
  constraint charges_and_refunds_name_a_request check ((kind in ('charge', 'refund')) = (request_id is not null)),
  constraint balance_after_not_negative check (balance_after_ap >= 0)
);
create index ledger_entries_by_account on app.ledger_entries (account_id, id desc);
-- A request is charged once, whatever the code above does.
create unique index request_charged_once on app.ledger_entries (request_id) where kind = 'charge';
create index refunds_by_request on app.ledger_entries (request_id) where kind = 'refund';
create unique index initial_grant_once on app.ledger_entries (account_id) where kind = 'initial_grant';

-- Inputs too large to ride in the job's payload; removed when the request is settled.
create table app.request_inputs (
  request_id uuid primary key,
  body text not null
);

-- Answers, kept 24 hours for polling, replay and lost messages. One partition a day, dropped whole.
create table app.request_results (
  request_id uuid primary key,
  -- 'json': the body; 'events': a stream's data lines, one an array element
  kind text not null,
  body text not null,
  constraint result_kind_is_known check (kind in ('json', 'events'))
) partition by range (request_id);
create table app.request_results_default partition of app.request_results default;

create table app.idempotency_keys (
  account_id uuid not null,
  key text not null,
  body_hash bytea not null,
  request_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (account_id, key),
  constraint idempotency_key_is_short check (length(key) between 1 and 255)
);
create index idempotency_keys_by_age on app.idempotency_keys (created_at);

-- Every running ingress and worker, seen alive at beat_at.
create table app.processes (
  id uuid primary key,
  kind text not null,
  -- the queue engine's name for this worker: what its jobs are locked by
  pool_id text,
  details jsonb not null default '{}',
  started_at timestamptz not null default now(),
  beat_at timestamptz not null default now(),
  constraint process_kind_is_known check (kind in ('ingress', 'worker'))
) with (fillfactor = 50);
