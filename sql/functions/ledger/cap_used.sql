-- What a subject has used of a cap in a period (AP, open holds in full).
create or replace function app.cap_used(p_subject uuid, p_scope text, p_period_start date) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select u.used_ap from app.cap_usage u
      where u.subject_id = p_subject and u.scope = p_scope and u.period_start = p_period_start),
    0
  )
$$;
