-- Paid requests: metadata only. What callers asked and what they were answered is no operator's matter.
create view admin.requests as
  select q.id, q.account_id, q.key_id, q.area, q.task, q.model_id, q.price_id, q.state, q.is_stream, q.hold_ap, q.cost_ap,
         coalesce((select sum(l.amount_ap)::bigint from app.ledger_entries l
                    where l.request_id = q.id and l.kind = 'refund'), 0) as refunded_ap,
         q.usage, q.provider, q.error_code, q.error_details, q.idempotency_key,
         q.created_at, q.started_at, q.finished_at, q.deadline_at
    from app.requests q;

comment on view admin.requests is '@primaryKey id
@foreignKey (account_id) references accounts (id)|@fieldName account|@foreignFieldName requests
@foreignKey (key_id) references keys (id)|@fieldName key|@behavior -connection -list
@foreignKey (model_id) references models (id)|@fieldName model|@behavior -connection -list
@foreignKey (price_id) references prices (id)|@fieldName price|@behavior -connection -list
@defaultOrder PRIMARY_KEY_DESC
A paid request. Newest first: ids begin with the time. `searchRequests` looks for a state, an area, a model or an error within a time.';
comment on column admin.requests.id is 'The request''s id (UUID version 7), which the caller knows as x-svc-request-id.';
comment on column admin.requests.account_id is '@notNull
@filterable
The account that pays.';
comment on column admin.requests.key_id is '@notNull
The key it was made with.';
comment on column admin.requests.area is '@notNull
llm, tts, images, x or cert.';
comment on column admin.requests.task is '@notNull
The queue''s task that performs it.';
comment on column admin.requests.model_id is '@notNull
The model asked for.';
comment on column admin.requests.price_id is '@notNull
The price in force when it was made, which is what it is charged by.';
comment on column admin.requests.state is '@notNull
queued, running, succeeded, failed, cancelled or expired.';
comment on column admin.requests.is_stream is '@notNull
Whether the answer is read as server-sent events.';
comment on column admin.requests.hold_ap is '@notNull
AP held when it was made: the most it can cost.';
comment on column admin.requests.cost_ap is 'AP charged; null until it is finished.';
comment on column admin.requests.refunded_ap is '@notNull
AP given back by operators.';
comment on column admin.requests.usage is 'What the provider counted (tokens, characters, seconds).';
comment on column admin.requests.provider is 'The provider that served it.';
comment on column admin.requests.error_code is 'Why it failed: a code of the error catalogue.';
comment on column admin.requests.error_details is 'The error''s sibling fields.';
comment on column admin.requests.idempotency_key is 'The caller''s Idempotency-Key.';
comment on column admin.requests.created_at is '@notNull
When it was accepted.';
comment on column admin.requests.started_at is 'When a worker began it.';
comment on column admin.requests.finished_at is 'When it was settled.';
comment on column admin.requests.deadline_at is '@notNull
When it is voided if it is not finished by then.';
