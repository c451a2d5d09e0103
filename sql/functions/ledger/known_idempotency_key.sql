-- What became of an idempotency key that came before, as submit_requests would say it: for operations that may be free, and so may
-- never ask submit_requests. No outcome: the key is new, or there is none.
create or replace function app.known_idempotency_key(p_item app.submission) returns app.submit_answer
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select row(
      1, k.outcome, null, null, null, null, null, null, null, k.request_id, null
    )::app.submit_answer
    from (values (true)) one(row)
    left join lateral (
      select k.request_id,
             case
               when k.body_hash <> decode(p_item.body_sha256, 'hex') then 'idempotency_conflict'
               when q.finished_at is null then 'idempotency_in_progress'
               else 'replay'
             end as outcome
        from app.idempotency_keys k
        left join app.requests q on q.id = k.request_id
        where k.account_id = p_item.account_id and k.key = p_item.idempotency_key
          and k.created_at >= now() - interval '24 hours'
    ) k on true
$$;
