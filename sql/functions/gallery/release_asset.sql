-- The other way round: a picture that is neither published nor certified any more expires when it would have, and not before its
-- owner had a day to fetch it. The caller has locked the file's row.
create or replace function app.release_asset(p_asset uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update app.assets a
    set expires_at = greatest(a.kept_expires_at, now() + interval '1 day'),
        sweep_at = greatest(a.kept_expires_at, now() + interval '1 day'),
        kept_expires_at = null
    where a.id = p_asset and a.kept_expires_at is not null and a.deleted_at is null
      and not exists (select from app.gallery_items g where g.asset_id = a.id and g.withdrawn_at is null)
      and not exists (select from app.certs c where c.asset_id = a.id and c.status <> 'revoked')
$$;
