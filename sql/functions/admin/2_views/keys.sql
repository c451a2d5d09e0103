-- API keys without their hashes, with what is used of their caps today and this month (UTC).
create view admin.keys as
  select k.id, k.account_id, k.prefix, k.hint, k.name, k.scopes, k.allowed_models,
         k.cap_per_request_ap, k.cap_daily_ap, k.cap_monthly_ap, k.rate_per_minute,
         k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
         case
           when k.revoked_at is not null then 'revoked'
           when k.expires_at <= now() then 'expired'
           else 'active'
         end as state,
         (select u.used_ap from app.cap_usage u
           where u.subject_id = k.id and u.scope = 'key:day'
             and u.period_start = (now() at time zone 'utc')::date) as used_today_ap,
         (select u.used_ap from app.cap_usage u
           where u.subject_id = k.id and u.scope = 'key:month'
             and u.period_start = date_trunc('month', now() at time zone 'utc')::date) as used_this_month_ap
    from app.keys k;

comment on view admin.keys is '@primaryKey id
@foreignKey (account_id) references accounts (id)|@fieldName account|@foreignFieldName keys
An API key. Its secret is shown once, when it is issued, and is stored nowhere.';
comment on column admin.keys.id is 'The key''s id.';
comment on column admin.keys.account_id is '@notNull
@filterable
The account that pays for its calls.';
comment on column admin.keys.prefix is '@notNull
svc_live_, svc_test_ or svc_beta_: how the secret begins.';
comment on column admin.keys.hint is '@notNull
The last four characters of the secret.';
comment on column admin.keys.name is '@notNull
What its owner calls it.';
comment on column admin.keys.scopes is '@notNull
The areas it may call.';
comment on column admin.keys.allowed_models is 'The only models it may use; null: whatever the account may.';
comment on column admin.keys.cap_per_request_ap is 'The most AP one request may hold; null: no cap.';
comment on column admin.keys.cap_daily_ap is 'The most AP it may use in a day (UTC); null: no cap.';
comment on column admin.keys.cap_monthly_ap is 'The most AP it may use in a month (UTC); null: no cap.';
comment on column admin.keys.rate_per_minute is '@notNull
Requests it may send in a minute.';
comment on column admin.keys.created_at is '@notNull
When it was issued.';
comment on column admin.keys.expires_at is 'When it stops working; null: never.';
comment on column admin.keys.revoked_at is 'When it was revoked.';
comment on column admin.keys.last_used_at is 'When it was last used, to the minute.';
comment on column admin.keys.state is '@notNull
active, expired or revoked.';
comment on column admin.keys.used_today_ap is 'AP counted against its daily cap today, open holds in full; null where nothing is counted.';
comment on column admin.keys.used_this_month_ap is
  'AP counted against its monthly cap this month, open holds in full; null where nothing is counted.';
