-- Revokes a key, once: a second call keeps the first date. Returns that date, or null where there is no such key.
create or replace function app.revoke_key(p_key uuid, p_actor text) returns timestamptz
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.keys;
  v_after app.keys;
begin
  select * into v_before from app.keys k where k.id = p_key for update;
  if not found then
    return null;
  end if;
  if v_before.revoked_at is not null then
    return v_before.revoked_at;
  end if;
  update app.keys k set revoked_at = now() where k.id = p_key returning * into v_after;
  perform app.audit(p_actor, 'revoke_key', 'key', p_key::text, to_jsonb(v_before) - 'secret_hash',
    to_jsonb(v_after) - 'secret_hash');
  return v_after.revoked_at;
end
$$;
