-- Part of submit_requests: takes an idempotency key for a new request, or says who has it.
-- The account's balance row is locked by the caller, so two requests of one account cannot race here.
-- outcome: null (taken: the request is new) | replay | idempotency_conflict | idempotency_in_progress
create or replace function app.claim_idempotency_key(p_account uuid, p_key text, p_body_hash bytea, p_request uuid)
returns table (outcome text, request_id uuid)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_known app.idempotency_keys;
  v_state text;
begin
  insert into app.idempotency_keys as k (account_id, key, body_hash, request_id)
    values (p_account, p_key, p_body_hash, p_request)
    on conflict (account_id, key) do update
      set body_hash = excluded.body_hash, request_id = excluded.request_id, created_at = now()
      where k.created_at < now() - interval '24 hours';
  if found then
    return query select null::text, null::uuid;
    return;
  end if;

  select * into v_known from app.idempotency_keys k where k.account_id = p_account and k.key = p_key;
  select r.state into v_state from app.requests r where r.id = v_known.request_id;
  return query select
    case
      when v_known.body_hash <> p_body_hash then 'idempotency_conflict'
      when v_state in ('succeeded', 'failed', 'cancelled', 'expired') then 'replay'
      else 'idempotency_in_progress' -- running, or accepted a moment ago in this same batch
    end,
    v_known.request_id;
end
$$;
