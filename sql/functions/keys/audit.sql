-- Writes one line of the audit log.
create or replace function app.audit(
  p_actor text, p_action text, p_target_type text, p_target_id text, p_before jsonb, p_after jsonb
) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into app.audit_log (actor, action, target_type, target_id, before, after)
    values (p_actor, p_action, p_target_type, p_target_id, p_before, p_after)
$$;
