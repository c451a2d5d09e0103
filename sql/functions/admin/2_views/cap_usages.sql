-- What capped keys and accounts have used in each period.
create view admin.cap_usages as
  select u.subject_id, u.scope, u.period_start, u.used_ap,
         case u.scope when 'key:day' then k.cap_daily_ap when 'key:month' then k.cap_monthly_ap end as cap_ap,
         case when u.scope like 'key:%' then u.subject_id end as key_id,
         case when u.scope like 'account:%' then u.subject_id end as account_id
    from app.cap_usage u
    left join app.keys k on u.scope like 'key:%' and k.id = u.subject_id;

comment on view admin.cap_usages is '@primaryKey subject_id,scope,period_start
@foreignKey (key_id) references keys (id)|@fieldName key|@behavior -connection -list
@foreignKey (account_id) references accounts (id)|@fieldName account|@behavior -connection -list
AP counted against one cap in one period. Periods older than two months are forgotten.';
comment on column admin.cap_usages.subject_id is '@filterable
The key''s or the account''s id.';
comment on column admin.cap_usages.scope is 'key:day, key:month, or account:<area>:day (the daily allowance of granted AP).';
comment on column admin.cap_usages.period_start is 'The period''s first day (UTC).';
comment on column admin.cap_usages.used_ap is '@notNull
AP used, open holds in full.';
comment on column admin.cap_usages.cap_ap is 'A key''s cap as it is now; an account''s allowance is configuration.';
comment on column admin.cap_usages.key_id is 'The key, where the cap is a key''s.';
comment on column admin.cap_usages.account_id is 'The account, where the cap is an account''s.';
