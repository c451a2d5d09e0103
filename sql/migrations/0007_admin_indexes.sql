-- Up Migration

-- What operators look things up by (sql/functions/admin): small tables with few writes, so an index more costs nothing that
-- a caller of the service would feel. Requests and the ledger get none: theirs are the hot path's.
create index accounts_by_age on app.accounts (created_at);
create index accounts_by_name on app.accounts (lower(name) text_pattern_ops);
create index accounts_awaiting_approval on app.accounts (created_at)
  where kind = 'enterprise' and approved_at is null;
create index audit_by_actor on app.audit_log (actor, id);
create index audit_by_target_id on app.audit_log (target_id, id);
