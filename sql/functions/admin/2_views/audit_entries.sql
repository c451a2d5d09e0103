-- Who did what: rows never change.
create view admin.audit_entries as
  select a.id, a.at, a.actor, a.action, a.target_type, a.target_id, a.before, a.after from app.audit_log a;

comment on view admin.audit_entries is '@primaryKey id
@defaultOrder PRIMARY_KEY_DESC
One act of an operator. Newest first.';
comment on column admin.audit_entries.id is 'The entry''s number.';
comment on column admin.audit_entries.at is '@notNull
When.';
comment on column admin.audit_entries.actor is '@notNull
@filterable
The operator (name and token id), or cli.';
comment on column admin.audit_entries.action is '@notNull
What was done, such as revoke_key.';
comment on column admin.audit_entries.target_type is '@notNull
@filterable
What it was done to: account, key, request, model, job, …';
comment on column admin.audit_entries.target_id is '@notNull
@filterable
The target''s id.';
comment on column admin.audit_entries.before is 'How the target stood before; null where it was made.';
comment on column admin.audit_entries.after is 'How it stood after, or what was decided.';
