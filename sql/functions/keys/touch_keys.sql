-- Notes when keys were last used (a minute's accuracy: the ingress sends its list once a minute).
create or replace function app.touch_keys(p_keys uuid[]) returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
  update app.keys k set last_used_at = now() where k.id = any (p_keys)
$$;
