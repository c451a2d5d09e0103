-- Takes an idempotency key for an answer that is found in the cache, so that another body under it is a conflict from then on, or
-- says who has it. p_request: the request that made what was found.
-- outcome: cached (the answer may be given) | cached_again (it was given under this key before) | what claim_idempotency_key says of
-- a key that belongs to a request of its own
create or replace function app.claim_cached_answer(p_account uuid, p_key text, p_body_sha256 text, p_request uuid)
returns table (outcome text, request_id uuid)
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  select case
           when c.outcome is null then 'cached'
           when c.outcome = 'replay' and c.request_id = p_request
             and not exists (select from app.requests q where q.id = p_request and q.idempotency_key = p_key) then 'cached_again'
           else c.outcome
         end,
         c.request_id
    from app.claim_idempotency_key(p_account, p_key, decode(p_body_sha256, 'hex'), p_request) c
$$;
